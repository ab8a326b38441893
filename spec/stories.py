"""Counterexamples told in words: each step of a trace is a sentence."""

from __future__ import annotations

from spec.configurations import Configuration

_SENTENCES = {
    "Fence": {
        "claims": "{0} claims the job: generation {1}.",
        "lease ends": "{0}'s lease ends; {0} is paused and does not know.",
        "operator": "An operator takes the job away from {0}.",
        "store loses": "The store fails over and has lost generation {0}.",
        "completes": "{0} completes the job under generation {1}.",
        "stops": "{0} is told that generation {1} is stale, and stops.",
        "announces": "{0} raises the fence to {1}.",
        "does not announce": "",
        "reads": "{0} reads the data.",
        "sends": "{0} sends write {2} of generation {1}; it is still under way.",
        "arrives": "Write {2} of {0}, generation {1}, arrives and is applied.",
        "refused": "A write of {0}, generation {1}, is refused.",
        "seals": "{0} seals the destination.",
    },
    "Belief": {
        "time": "A second passes.",
        "store's clock jumps": "The store's clock jumps forward by a whole lease.",
        "asks to claim": "{0} asks to claim, when its own clock shows {1}.",
        "is given": "The store gives the job to {0}: generation {1}.",
        "asks to renew": "{0} asks to renew, when its own clock shows {1}.",
        "is renewed": "The store renews {0}'s lease.",
        "no answer": "{0} gets no answer.",
        "hears": "{0} hears the answer, when its own clock shows {1}.",
        "lets go": "{0}'s belief ends, and it lets go.",
    },
    "Once": {
        "claims": "Run {0} begins.",
        "remembers": "Run {0} finds the remembered result and does nothing.",
        "finds nothing": "Run {0} finds no remembered result.",
        "sends": "Run {0} sends the effect.",
        "applied": "The third party applies it.",
        "repeat": "The third party knows the key and answers as before.",
        "records": "Run {0} records the result.",
        "dies": "Run {0} dies.",
    },
}

_ENDS = {
    "NoLostUpdate": "That write was computed from data which has changed in between: an update is lost.",
    "NothingAfterDone": "The job was completed already: its last write lands afterwards.",
    "NoTokenTwice": "The same generation was given out twice: no destination can tell the two owners apart.",
    "OnlyTheOwnerCompletes": "The job had another owner, or none: a completion that nobody was entitled to.",
    "OneBeliever": "Now two workers believe that the job is theirs.",
    "AppliedOnce": "The effect has been applied twice.",
    "OneRecord": "The first result has been overwritten.",
}


def story(configuration: Configuration, trace: tuple[tuple[str, ...], ...]) -> list[str]:
    """Tell a trace as a numbered list, and what is wrong at its end."""
    sentences = _SENTENCES[configuration.module]
    told = [sentences[step[0]].format(*step[1:]) for step in trace if step[0] != "begin"]
    lines = [f"{number}. {sentence}" for number, sentence in enumerate(filter(None, _gathered(told)), 1)]
    return [*lines, "", _ENDS[configuration.breaks or ""]]


def _gathered(told: list[str]) -> list[str]:
    gathered: list[str] = []
    count = 0
    for sentence in [*told, ""]:
        if sentence == "A second passes.":
            count += 1
            continue
        if count:
            gathered.append("A second passes." if count == 1 else f"{count} seconds pass.")
            count = 0
        gathered.append(sentence)
    return gathered
