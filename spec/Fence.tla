------------------------------- MODULE Fence -------------------------------
(***************************************************************************)
(* One job, its workers, and one destination that they read and write.     *)
(*                                                                         *)
(* Leases may end at any moment, which stands for every pause, every slow  *)
(* network and every clock error. Messages to the destination may be held  *)
(* back for ever, or repeated. The store may once lose its last claim, as  *)
(* after a failover or a restored backup. An operator may take the job     *)
(* away. Each constant in capitals is one of Tenure's guards; a            *)
(* configuration without it shows what the guard is for.                   *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Workers,
    MaxClaims,   \* how often the job may be claimed
    MaxWrites,   \* how many writes one run may make
    GUARD,       \* the store takes a completion only under the current generation
    FENCE,       \* the destination compares generations
    RAISE,       \* a new owner announces its generation there before it reads
    SEQUENCE,    \* the destination orders the writes of one generation, too
    ANSWERED,    \* a run completes only once its last write was answered
    SEAL,        \* ... or closes the destination behind itself first
    FLOOR,       \* after a loss, claims start above anything that can have been given out
    REPEATS,     \* the network may deliver a write again
    LOSES,       \* the store may lose its last claim, once
    OPERATES     \* an operator may take the job away

VARIABLES
    owner, generation, floor, ended, done,          \* the store
    at, token, base, sent,                          \* each worker: where it is, its token, what it read, writes sent
    network, mark, data,                            \* the destination, and what is on its way there
    claims, losses, issued, twice, lost, late, usurped,  \* what the properties speak of
    said                                            \* what happened last, for whoever reads a trace

store == <<owner, generation, floor, ended, done>>
workers == <<at, token, base, sent>>
destination == <<network, mark, data>>
verdicts == <<claims, losses, issued, twice, lost, late, usurped>>
vars == <<store, workers, destination, verdicts, said>>
View == <<store, workers, destination, verdicts>>

Nobody == "nobody"
Step == 10  \* how far the floor is raised: beyond all claims of a run of this model
Higher(a, b) == IF a > b THEN a ELSE b
Below(a, b) == a[1] < b[1] \/ (a[1] = b[1] /\ a[2] < b[2])
Sealing == MaxWrites + 1  \* a sequence above that of every write

Init ==
    /\ owner = Nobody /\ generation = 0 /\ floor = 0 /\ ended = FALSE /\ done = FALSE
    /\ at = [w \in Workers |-> "idle"] /\ token = [w \in Workers |-> 0]
    /\ base = [w \in Workers |-> <<>>] /\ sent = [w \in Workers |-> 0]
    /\ network = {} /\ mark = <<0, 0>> /\ data = <<>>
    /\ claims = 0 /\ losses = 0 /\ issued = {} /\ twice = FALSE /\ lost = FALSE /\ late = FALSE /\ usurped = FALSE
    /\ said = <<"begin">>

-----------------------------------------------------------------------------
(* The store *)

Claim(w) ==
    /\ at[w] = "idle" /\ ~done /\ claims < MaxClaims /\ (owner = Nobody \/ ended)
    /\ LET next == Higher(generation, floor) + 1 IN
        /\ generation' = next
        /\ token' = [token EXCEPT ![w] = next]
        /\ twice' = (twice \/ next \in issued)
        /\ issued' = issued \cup {next}
        /\ said' = <<"claims", w, next>>
    /\ owner' = w /\ ended' = FALSE /\ claims' = claims + 1
    /\ at' = [at EXCEPT ![w] = "claimed"] /\ sent' = [sent EXCEPT ![w] = 0]
    /\ UNCHANGED <<floor, done, base, destination, losses, lost, late, usurped>>

LeaseEnds ==
    /\ owner # Nobody /\ ~ended /\ ended' = TRUE /\ said' = <<"lease ends", owner, generation>>
    /\ UNCHANGED <<owner, generation, floor, done, workers, destination, verdicts>>

TakeAway ==  \* an operator's release: the owner's token is stale at once
    /\ OPERATES /\ owner # Nobody /\ ~done
    /\ generation' = Higher(generation, floor) + 1 /\ owner' = Nobody /\ ended' = FALSE
    /\ said' = <<"operator", owner, generation>>
    /\ UNCHANGED <<floor, done, workers, destination, verdicts>>

LoseLastClaim ==
    /\ LOSES /\ losses = 0 /\ generation > 0 /\ ~done /\ losses' = 1
    /\ generation' = generation - 1 /\ owner' = Nobody /\ ended' = FALSE
    /\ floor' = IF FLOOR THEN Step ELSE 0
    /\ said' = <<"store loses", generation>>
    /\ UNCHANGED <<done, workers, destination, claims, issued, twice, lost, late, usurped>>

Answered(w) == data # <<>> /\ data[Len(data)] = <<w, token[w], sent[w]>>
Current(w) == owner = w /\ token[w] = generation

Complete(w) ==
    /\ at[w] = (IF SEAL THEN "sealed" ELSE "sent") /\ ~done
    /\ SEAL \/ Answered(w) \/ ~ANSWERED
    /\ Current(w) \/ ~GUARD
    /\ usurped' = (usurped \/ ~Current(w))
    /\ done' = TRUE /\ owner' = Nobody /\ at' = [at EXCEPT ![w] = "over"]
    /\ said' = <<"completes", w, token[w]>>
    /\ UNCHANGED <<generation, floor, ended, token, base, sent, destination, claims, losses, issued, twice, lost, late>>

Stop(w) ==  \* told by the store that its token is stale
    /\ at[w] \notin {"idle", "over"} /\ ~Current(w) /\ at' = [at EXCEPT ![w] = "idle"]
    /\ said' = <<"stops", w, token[w]>>
    /\ UNCHANGED <<store, token, base, sent, destination, verdicts>>

-----------------------------------------------------------------------------
(* The destination *)

Announce(w) ==
    /\ at[w] = "claimed"
    /\ IF ~RAISE THEN at' = [at EXCEPT ![w] = "ready"] /\ UNCHANGED mark
       ELSE IF token[w] < mark[1] THEN at' = [at EXCEPT ![w] = "idle"] /\ UNCHANGED mark
       ELSE /\ at' = [at EXCEPT ![w] = "ready"]
            /\ mark' = IF token[w] > mark[1] THEN <<token[w], 0>> ELSE mark
    /\ said' = <<IF ~RAISE THEN "does not announce" ELSE IF token[w] < mark[1] THEN "refused" ELSE "announces", w, token[w]>>
    /\ UNCHANGED <<store, token, base, sent, network, data, verdicts>>

Read(w) ==
    /\ at[w] = "ready" /\ base' = [base EXCEPT ![w] = data] /\ at' = [at EXCEPT ![w] = "read"]
    /\ said' = <<"reads", w, token[w]>>
    /\ UNCHANGED <<store, token, sent, destination, verdicts>>

Send(w) ==
    /\ at[w] = "read" /\ sent[w] < MaxWrites
    /\ LET number == sent[w] + 1 IN
        /\ network' = network \cup
            {[generation |-> token[w], number |-> number, from |-> base[w], by |-> w,
              to |-> Append(base[w], <<w, token[w], number>>)]}
        /\ sent' = [sent EXCEPT ![w] = number]
        /\ said' = <<"sends", w, token[w], number>>
    /\ at' = [at EXCEPT ![w] = "sent"]
    /\ UNCHANGED <<store, token, base, mark, data, verdicts>>

ReadOn(w) ==
    /\ at[w] = "sent" /\ Answered(w) /\ sent[w] < MaxWrites
    /\ base' = [base EXCEPT ![w] = data] /\ at' = [at EXCEPT ![w] = "read"]
    /\ said' = <<"reads", w, token[w]>>
    /\ UNCHANGED <<store, token, sent, destination, verdicts>>

Passes(m) ==
    \/ ~FENCE
    \/ IF SEQUENCE THEN Below(mark, <<m.generation, m.number>>) ELSE mark[1] <= m.generation

Arrive(m) ==
    /\ m \in network
    /\ network' = IF REPEATS THEN network ELSE network \ {m}
    /\ IF Passes(m)
       THEN /\ data' = m.to
            /\ mark' = IF ~FENCE THEN mark ELSE <<m.generation, IF SEQUENCE THEN m.number ELSE 0>>
            /\ lost' = (lost \/ (m.from # data /\ m.to # data))
            /\ late' = (late \/ (done /\ m.to # data))
            /\ said' = <<"arrives", m.by, m.generation, m.number>>
       ELSE said' = <<"refused", m.by, m.generation, m.number>> /\ UNCHANGED <<data, mark, lost, late>>
    /\ UNCHANGED <<store, workers, claims, losses, issued, twice, usurped>>

Close(w) ==
    /\ SEAL /\ at[w] = "sent" /\ (Answered(w) \/ ~ANSWERED)
    /\ IF token[w] < mark[1] THEN at' = [at EXCEPT ![w] = "idle"] /\ UNCHANGED mark
       ELSE at' = [at EXCEPT ![w] = "sealed"] /\ mark' = <<token[w], Sealing>>
    /\ said' = <<"seals", w, token[w]>>
    /\ UNCHANGED <<store, token, base, sent, network, data, verdicts>>

Next ==
    \/ LeaseEnds \/ TakeAway \/ LoseLastClaim
    \/ \E w \in Workers :
        Claim(w) \/ Announce(w) \/ Read(w) \/ Send(w) \/ ReadOn(w) \/ Close(w) \/ Complete(w) \/ Stop(w)
    \/ \E m \in network : Arrive(m)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The promises *)

NoTokenTwice == ~twice          \* I1: a generation is given out once
NoLostUpdate == ~lost           \* I9: each write was computed from what it replaced
NothingAfterDone == ~late       \* I11: once the job is completed, nothing more is applied
OnlyTheOwnerCompletes == ~usurped   \* I3, I4
=============================================================================
