"""Carries results over from older digests: hours of plays are not lost to a changed docstring.

A digest is of the text of code, so that any change of it sets all results aside. Here the
beginning of each set is made again with the present code: of every problem, sampler and final
model the first seed that is stored, at its first budgets. Where samples, lab seconds and errors
come out the same (the errors tell of every point that was asked), the file takes its present
name; else it stays where it is, and is named. What a change does to later budgets only, this does
not see: after a change of that kind, delete what it concerns.

References are one fit and have no beginning. On recordings they are fitted again. On surfaces,
where that takes minutes each, one is taken where the same text of the same model made the same
of everything that was made again, and the text of the surface is the present one or made the same
curves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import msgspec

from science import judging, playing, recordings, surfaces, tables
from science.judging import Score
from science.playing import Fitting, Kept
from science.stored import Store, lines_of

BUDGETS = 3
TOLERANCE = 1e-9
"""Relative difference of figures that are the same."""
REFERENCE = "(reference)"


class Older(msgspec.Struct, frozen=True):
    """A file under an older digest: of the problem, of the sampler (none for references), of the
    model."""

    problem: str
    sampler: str
    model: str
    world: str
    by: str
    path: Path


class Checked(msgspec.Struct, frozen=True):
    older: Older
    same: bool


def report(store: Store, workers: int) -> str:
    """Carry over what comes out the same; how many files of which sampler and model did."""
    names = [s.name for s in surfaces.SURFACES]
    names += [*recordings.names(), *recordings.twins()]
    curves = [one for name in names for one in older_curves(store, name)]
    references = [one for name in names for one in older_references(store, name)]
    fitted = [one for one in references if one.problem not in surfaces.BY_NAME]
    jobs: dict[tuple[str, str], list[Older]] = {}
    for one in curves:
        jobs.setdefault((one.problem, one.sampler), []).append(one)
    with ProcessPoolExecutor(workers) as executor:
        done = [c for found in executor.map(same_curves, jobs.values()) for c in found]
        done += executor.map(partial(same_reference, store), fitted)
    done += [
        Checked(one, trusted(one, done)) for one in references if one.problem in surfaces.BY_NAME
    ]
    for one in done:
        if one.same:
            take(store, one.older)
    return printed(done)


def older_curves(store: Store, name: str) -> list[Older]:
    """Files of curves that the present code does not find."""
    pairs = {f"{s}-{m}": (s, m) for s in playing.samplers() for m in judging.models()}
    found = []
    for path in _files(store, f"curves/{name}/any"):
        pair, world, _, by = path.stem.rsplit("-", 3)
        if pair in pairs and path != store.path(playing.key(name, *pairs[pair])):
            found.append(Older(name, *pairs[pair], world, by, path))
    return found


def older_references(store: Store, name: str) -> list[Older]:
    found = []
    for model in judging.models():
        present = store.path(playing.reference_key(name, model))
        for path in _files(store, f"references/{name}/{model}/any"):
            if path != present:
                found.append(Older(name, REFERENCE, model, *path.stem.split("-"), path))
    return found


def _files(store: Store, name: str) -> list[Path]:
    return sorted(store.path(name).parent.glob("*.jsonl"))


def same_curves(files: Sequence[Older]) -> list[Checked]:
    """Of one problem and sampler: a play is asked for all of its models."""
    fittings: dict[tuple[int, int], Fitting] = {}
    done = []
    for one in files:
        kept = [k for k in lines_of(one.path, Kept) if k.curve.samples]
        same = bool(kept)
        if kept:
            first = min(kept, key=lambda k: (k.seed, k.most))
            which = first.seed, first.most
            if which not in fittings:
                fittings[which] = Fitting(one.problem, one.sampler, *which)
            same = same_beginning(first, one.model, fittings[which])
        done.append(Checked(one, same))
    return done


def same_beginning(kept: Kept, model: str, fitting: Fitting) -> bool:
    """Whether the first budgets cost and give the same."""
    old = kept.curve
    for place in range(min(BUDGETS, len(old.samples))):
        new = fitting(place, [model])
        if isinstance(new, str):
            return False
        samples, lab_s, scores = new
        if samples != old.samples[place] or not math.isclose(
            lab_s, old.lab_s[place], rel_tol=TOLERANCE
        ):
            return False
        if not same_score(scores[model], old.scores[place]):
            return False
    return True


def same_score(one: Score, other: Score) -> bool:
    """Errors alone: seconds are the machine's."""
    pairs = (one.rmse, other.rmse), (one.median, other.median), (one.rmse_kpi, other.rmse_kpi)
    return all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in pairs)


def same_reference(store: Store, one: Older) -> Checked:
    """Fitted again and stored under the present digest, whatever comes out."""
    known = next(lines_of(one.path, Score), None)
    found = playing.reference_kept(store, one.problem, one.model)
    return Checked(one, known is not None and same_score(found, known))


def trusted(reference: Older, done: Iterable[Checked]) -> bool:
    """Whether a reference on a surface may be taken without fitting it again."""
    of_model = [
        c.same for c in done if c.older.model == reference.model and c.older.by == reference.by
    ]
    is_world = playing.world(reference.problem) == reference.world or any(
        c.same
        for c in done
        if c.older.problem == reference.problem and c.older.world == reference.world
    )
    is_model = playing.by(reference.model) == reference.by or (bool(of_model) and all(of_model))
    return is_world and is_model


def take(store: Store, older: Older) -> None:
    """The lines under the present name, and the old file gone."""
    if older.sampler == REFERENCE:
        name = playing.reference_key(older.problem, older.model)
    else:
        name = playing.key(older.problem, older.sampler, older.model)
    present = store.path(name)
    if not (older.sampler == REFERENCE and present.exists()):
        lines = older.path.read_bytes().rstrip(b"\n")
        with present.open("ab") as file:
            file.write(lines + b"\n")
    older.path.unlink()


def printed(done: Sequence[Checked]) -> str:
    """By sampler and model: files taken and left, and where the left ones are."""
    rows = []
    for pair in sorted({(c.older.sampler, c.older.model) for c in done}):
        own = [c for c in done if (c.older.sampler, c.older.model) == pair]
        left = [c.older for c in own if not c.same]
        places = ", ".join(sorted({one.problem for one in left}))
        rows.append([*pair, f"{len(own) - len(left)}", f"{len(left)}", places])
    left = "\n".join(str(c.older.path) for c in done if not c.same)
    return "\n\n".join(
        [
            tables.table(["sampler", "model", "taken", "left", "left on"], rows),
            f"Taken: the first {BUDGETS} budgets of a seed come out the same to {TOLERANCE:g}. "
            f"Left as they were:\n{left or 'none'}",
        ]
    )
