------------------------------- MODULE Belief ------------------------------
(***************************************************************************)
(* When may a worker believe that it still owns its job? One job, workers  *)
(* with clocks of their own, and a store with its clock; time passes in    *)
(* ticks. Requests and answers take any time at all, or never arrive.      *)
(*                                                                         *)
(* A lease ends by the store's clock. Its holder counts on its own, from   *)
(* the moment before it sent the request (R13), and takes a margin off.    *)
(***************************************************************************)
EXTENDS Naturals

CONSTANTS
    Workers,
    Lease,        \* ticks of the store's clock
    Margin,       \* ticks that a holder takes off
    MaxTime,
    MaxClaims,
    FROM_SEND,    \* the holder counts from before the request, not from the answer
    STRICT,       \* a renewal of an ended lease is refused, and an unanswered one prolongs nothing
    SLOW,         \* workers whose clock is slow
    EVERY,        \* ... and stands still at every so many ticks
    JUMPS         \* the store's clock may be stepped forward once

VARIABLES
    now,          \* true time
    store,        \* the store's clock
    owner, generation, until, claims,
    clock,        \* each worker's clock
    request,      \* each worker's request under way: none, or [kind, at, seen] on its own clock
    answer,       \* what is on its way back: none, or [generation, at]
    holds,        \* the generation that each worker believes to hold, 0 for none
    belief,       \* until when, on its own clock
    jumped, said

vars == <<now, store, owner, generation, until, claims, clock, request, answer, holds, belief, jumped, said>>
View == <<now, store, owner, generation, until, claims, clock, request, answer, holds, belief, jumped>>

None == [kind |-> "none", at |-> 0]
Unanswered == [generation |-> 0, at |-> 0]
Nobody == "nobody"
Higher(a, b) == IF a > b THEN a ELSE b

Init ==
    /\ now = 0 /\ store = 0 /\ owner = Nobody /\ generation = 0 /\ until = 0 /\ claims = 0
    /\ clock = [w \in Workers |-> 0] /\ request = [w \in Workers |-> None] /\ answer = [w \in Workers |-> Unanswered]
    /\ holds = [w \in Workers |-> 0] /\ belief = [w \in Workers |-> 0]
    /\ jumped = FALSE /\ said = <<"begin">>

Believes(w) == holds[w] > 0 /\ clock[w] < belief[w]

Tick ==
    /\ now < MaxTime /\ now' = now + 1 /\ store' = store + 1
    /\ clock' = [w \in Workers |-> IF w \in SLOW /\ now % EVERY = 1 THEN clock[w] ELSE clock[w] + 1]
    /\ said' = <<"time", now + 1>>
    /\ UNCHANGED <<owner, generation, until, claims, request, answer, holds, belief, jumped>>

Jump ==
    /\ JUMPS /\ ~jumped /\ jumped' = TRUE /\ store' = store + Lease
    /\ said' = <<"store's clock jumps", Lease>>
    /\ UNCHANGED <<now, owner, generation, until, claims, clock, request, answer, holds, belief>>

AskToClaim(w) ==
    /\ request[w] = None /\ answer[w] = Unanswered /\ holds[w] = 0 /\ claims < MaxClaims
    /\ request' = [request EXCEPT ![w] = [kind |-> "claim", at |-> clock[w]]]
    /\ said' = <<"asks to claim", w, clock[w]>>
    /\ UNCHANGED <<now, store, owner, generation, until, claims, clock, answer, holds, belief, jumped>>

AskToRenew(w) ==
    /\ request[w] = None /\ answer[w] = Unanswered /\ Believes(w)
    /\ request' = [request EXCEPT ![w] = [kind |-> "renew", at |-> clock[w]]]
    /\ said' = <<"asks to renew", w, clock[w]>>
    /\ UNCHANGED <<now, store, owner, generation, until, claims, clock, answer, holds, belief, jumped>>

GrantClaim(w) ==
    /\ request[w] # None /\ request[w].kind = "claim" /\ (owner = Nobody \/ until <= store) /\ claims < MaxClaims
    /\ owner' = w /\ generation' = generation + 1 /\ until' = store + Lease /\ claims' = claims + 1
    /\ answer' = [answer EXCEPT ![w] = [generation |-> generation + 1, at |-> request[w].at]]
    /\ request' = [request EXCEPT ![w] = None]
    /\ said' = <<"is given", w, generation + 1>>
    /\ UNCHANGED <<now, store, clock, holds, belief, jumped>>

GrantRenewal(w) ==
    /\ request[w] # None /\ request[w].kind = "renew" /\ owner = w /\ generation = holds[w]
    /\ (until > store \/ ~STRICT)
    /\ until' = Higher(until, store + Lease)
    /\ answer' = [answer EXCEPT ![w] = [generation |-> generation, at |-> request[w].at]]
    /\ request' = [request EXCEPT ![w] = None]
    /\ said' = <<"is renewed", w, generation>>
    /\ UNCHANGED <<now, store, owner, generation, claims, clock, holds, belief, jumped>>

Lose(w) ==  \* the request, or its refusal, is lost on the way; without STRICT its sender hopes for the best
    /\ request[w] # None /\ request' = [request EXCEPT ![w] = None]
    /\ belief' = IF STRICT \/ request[w].kind = "claim" THEN belief
                 ELSE [belief EXCEPT ![w] = Higher(belief[w], clock[w] + Lease - Margin)]
    /\ said' = <<"no answer", w, clock[w]>>
    /\ UNCHANGED <<now, store, owner, generation, until, claims, clock, answer, holds, jumped>>

Hear(w) ==
    /\ answer[w] # Unanswered
    /\ LET from == IF FROM_SEND THEN answer[w].at ELSE clock[w] IN
        belief' = [belief EXCEPT ![w] = IF holds[w] = 0 THEN from + Lease - Margin
                                        ELSE IF Believes(w) THEN Higher(belief[w], from + Lease - Margin)
                                        ELSE belief[w]]
    /\ holds' = [holds EXCEPT ![w] = answer[w].generation]
    /\ answer' = [answer EXCEPT ![w] = Unanswered]
    /\ said' = <<"hears", w, clock[w]>>
    /\ UNCHANGED <<now, store, owner, generation, until, claims, clock, request, jumped>>

GiveUp(w) ==  \* its belief is over: it lets go of the job
    /\ holds[w] > 0 /\ ~Believes(w) /\ answer[w] = Unanswered /\ request[w] = None
    /\ holds' = [holds EXCEPT ![w] = 0] /\ said' = <<"lets go", w, clock[w]>>
    /\ UNCHANGED <<now, store, owner, generation, until, claims, clock, request, answer, belief, jumped>>

Next ==
    \/ Tick \/ Jump
    \/ \E w \in Workers :
        AskToClaim(w) \/ AskToRenew(w) \/ GrantClaim(w) \/ GrantRenewal(w) \/ Lose(w) \/ Hear(w) \/ GiveUp(w)

Spec == Init /\ [][Next]_vars

OneBeliever == \A w \in Workers : Believes(w) => (owner = w /\ generation = holds[w])   \* I7
=============================================================================
