-------------------------------- MODULE Once -------------------------------
(***************************************************************************)
(* A named step: an effect at a third party that cannot compare            *)
(* generations, but may know idempotency keys. Its result is remembered in *)
(* the store under the job and the step. Runs may be paused, die and be    *)
(* taken over at every point.                                              *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Runs,        \* the generations that may run
    REMEMBER,    \* the store remembers the step's result, and a later run asks for it first
    KEY,         \* what the third party is given as key: "none", "generation" or "job"
    GUARDED      \* the record is written only under the current generation

VARIABLES generation, at, network, keys, applied, record, records, said
vars == <<generation, at, network, keys, applied, record, records, said>>
View == <<generation, at, network, keys, applied, record, records>>

Init ==
    /\ generation = 0 /\ at = [r \in Runs |-> "waits"] /\ network = {} /\ keys = {} /\ applied = 0
    /\ record = 0 /\ records = 0 /\ said = <<"begin">>

Begin(r) ==
    /\ at[r] = "waits" /\ r = generation + 1 /\ generation' = r /\ at' = [at EXCEPT ![r] = "runs"]
    /\ said' = <<"claims", r>>
    /\ UNCHANGED <<network, keys, applied, record, records>>

Recall(r) ==
    /\ at[r] = "runs"
    /\ at' = [at EXCEPT ![r] = IF REMEMBER /\ record # 0 THEN "over" ELSE "asked"]
    /\ said' = <<IF REMEMBER /\ record # 0 THEN "remembers" ELSE "finds nothing", r>>
    /\ UNCHANGED <<generation, network, keys, applied, record, records>>

Key(r) == IF KEY = "job" THEN 0 ELSE r

Send(r) ==
    /\ at[r] = "asked" /\ network' = network \cup {r} /\ at' = [at EXCEPT ![r] = "sent"]
    /\ said' = <<"sends", r>>
    /\ UNCHANGED <<generation, keys, applied, record, records>>

Arrive(r) ==
    /\ r \in network /\ network' = network \ {r}
    /\ LET repeat == KEY # "none" /\ Key(r) \in keys IN
        /\ applied' = IF repeat THEN applied ELSE applied + 1
        /\ keys' = IF KEY = "none" THEN keys ELSE keys \cup {Key(r)}
        /\ said' = <<IF repeat THEN "repeat" ELSE "applied", r>>
    /\ at' = [at EXCEPT ![r] = IF at[r] = "sent" THEN "answered" ELSE at[r]]
    /\ UNCHANGED <<generation, record, records>>

Remember(r) ==
    /\ at[r] = "answered" /\ (r = generation \/ ~GUARDED) /\ at' = [at EXCEPT ![r] = "over"]
    /\ record' = IF record = 0 \/ ~GUARDED THEN r ELSE record
    /\ records' = IF record = 0 \/ ~GUARDED THEN records + 1 ELSE records
    /\ said' = <<"records", r>>
    /\ UNCHANGED <<generation, network, keys, applied>>

Die(r) ==
    /\ at[r] \in {"runs", "asked", "sent", "answered"} /\ at' = [at EXCEPT ![r] = "dead"]
    /\ said' = <<"dies", r>>
    /\ UNCHANGED <<generation, network, keys, applied, record, records>>

Next == \E r \in Runs : Begin(r) \/ Recall(r) \/ Send(r) \/ Arrive(r) \/ Remember(r) \/ Die(r)
Spec == Init /\ [][Next]_vars

AppliedOnce == applied <= 1      \* I10
OneRecord == records <= 1        \* the first result stays
=============================================================================
