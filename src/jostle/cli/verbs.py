"""The verbs of the command line, in groups: where each lives and one line about it. Data only."""

from __future__ import annotations

# group -> verb -> (module of jostle.cli, one line)
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Jobs": {
        "run": ("run", "run the jobs of a file and stay until they have ended"),
        "compete": ("compete", "run the queues of a workspace (command/, config/, logs/) and stay until they have ended"),
        "add": ("add", "queue one command and print its id"),
        "cancel": ("change", "end jobs, or take them out of the queue"),
        "hold": ("change", "keep queued jobs from starting"),
        "unhold": ("change", "let held jobs start again"),
        "retry": ("change", "queue finished jobs again, as new ones"),
        "move": ("change", "change a job's place in its queue"),
        "set": ("change", "change a queued job: priority, memory, gpus, …; or the gpus of an elastic one that runs"),
        "wait": ("wait", "wait until jobs have ended"),
        "alloc": ("alloc", "hold GPUs under a name, for programs that you start there"),
        "release": ("alloc", "give the GPUs of an allocation back"),
        "start": ("alloc", "run a program on the GPUs of an allocation"),
        "validate": ("validate", "check job files without running them"),
        "import": ("importing", "turn a workspace or task file into a job file"),
        "uni-id": ("uniid", "read and write the uni_id file from scripts"),
    },
    "Looking": {
        "ps": ("ps", "list what runs, waits and has lately ended"),
        "show": ("show", "everything about one job"),
        "why": ("show", "why a job waits, or why it ended as it did"),
        "logs": ("logs", "what a job has printed"),
        "results": ("results", "metrics out of logs: mean and deviation over seeds, as a table or plot"),
        "gpus": ("gpus", "the GPUs, who uses them, and whether they may be taken"),
        "monitor": ("manage", "show nodes, tasks and their cards every few seconds; with --manage keep some for you"),
        "limits": ("limits", "how many cards you may hold, in all your homes together; set them"),
        "status": ("engine", "the engine and its jobs; what the host has free; who holds which cards"),
    },
    "Engine": {
        "up": ("engine", "start the engine and the console, and keep them running"),
        "down": ("engine", "stop the engine and the console; running jobs go on"),
        "web": ("web", "the console in a browser: start it, log in, its tokens"),
        "manage": ("manage", "the resource manager of the source: its flags, its configuration, its status"),
        "notify": ("notify", "whether messages about jobs and GPUs get through; send a test"),
        "doctor": ("doctor", "look for what is wrong with this host or installation"),
        "clean": ("clean", "remove what old jobs left behind"),
    },
    "Trying it out": {
        "demo": ("demo", "watch jobs compete for simulated GPUs"),
        "burn": ("burn", "hold GPU memory for a while"),
        "completion": ("completion", "print the completion script of a shell"),
    },
}

VERBS: dict[str, tuple[str, str]] = {verb: entry for group in GROUPS.values() for verb, entry in group.items()}

HARMLESS = frozenset((*GROUPS["Looking"], "cancel", "release", "wait", "validate", "down", "doctor", "notify"))
"""Verbs that read or end: in a home whose way is open to others these warn, where the rest refuses."""
