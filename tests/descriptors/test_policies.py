"""Chain policies: what they generate, against all that could be, and where they are wrong."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path

import pytest
from examples import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import paths
from workbench.descriptors.library import DescriptorLibrary
from workbench.descriptors.policies import MOST_CHAINS, chains_of, generate_chains
from workbench.descriptors.policy_text import Name, Operation, Policy, parse_policy
from workbench.domain.errors import DescriptorError
from workbench.domain.topology import Series, Vnf

Chain = tuple[str, ...]
FUNCTIONS = ("a", "b", "c", "d")
SIXES = ("abcdef", "ghijkl", "mnopqr")


def obeys(chain: Chain, policy: Policy) -> bool:
    """The definition, word by word; a chain holds nothing but what the policy names."""
    if isinstance(policy, Name):
        return chain == (policy.vnf,)
    *before, last = policy.parts
    first = before[0] if len(before) == 1 else Operation(policy.operator, tuple(before), ())
    if policy.operator == "|":
        return obeys(chain, first) or obeys(chain, last)
    if policy.operator == ">":
        cuts = range(len(chain) + 1)
        return any(obeys(chain[:cut], first) and obeys(chain[cut:], last) for cut in cuts)
    return set(chain) <= {*first.names, *last.names} and all(
        obeys(kept(chain, side.names), side) for side in (first, last)
    )


def kept(chain: Chain, names: Chain) -> Chain:
    return tuple(name for name in chain if name in names)


def everything(functions: Chain) -> set[Chain]:
    chosen = (subset for n in range(1, len(functions) + 1) for subset in combinations(functions, n))
    return {chain for subset in chosen for chain in permutations(subset)}


def texts() -> st.SearchStrategy[str]:
    def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        many = st.lists(inner, min_size=2, max_size=3)
        bare = st.tuples(st.sampled_from("|&>"), many).map(lambda pair: pair[0].join(pair[1]))
        return bare | bare.map(lambda text: f"({text})")

    return st.recursive(st.sampled_from(FUNCTIONS), joined, max_leaves=6)


@settings(max_examples=examples(300), deadline=None)
@given(text=texts(), free=st.sets(st.sampled_from(("d", "e")), max_size=2))
def test_a_policy_generates_all_chains_that_obey_it_and_no_other(text: str, free: set[str]) -> None:
    policy = parse_policy(text)
    others = tuple(sorted(free - set(policy.names)))
    expected = {
        chain
        for chain in everything((*policy.names, *others))
        if obeys(kept(chain, policy.names), policy)
    }
    if not expected:
        with pytest.raises(DescriptorError) as caught:
            chains_of(policy, text, others, MOST_CHAINS)
        assert caught.value.mistakes[0].field == "operator"
        return
    found = chains_of(policy, text, others, MOST_CHAINS)
    assert set(found) == expected
    assert len(found) == len(expected), "no chain comes twice"


@settings(max_examples=examples(200), deadline=None)
@given(text=st.text(st.sampled_from("ab-|&>() \n$é"), max_size=12))
def test_any_text_is_a_policy_or_has_its_mistake_at_a_place_in_it(text: str) -> None:
    try:
        policy = parse_policy(text)
    except DescriptorError as error:
        (mistake,) = error.mistakes
        lines = text.rstrip().split("\n")
        assert 1 <= mistake.line <= len(lines)
        assert 1 <= mistake.column <= len(lines[mistake.line - 1]) + 1
        return
    assert policy.names


@pytest.mark.parametrize(
    ("text", "chains"),
    [
        ("a", ["a"]),
        ("a & b", ["a b", "b a"]),
        ("a | b", ["a", "b"]),
        ("a > b", ["a b"]),
        # Order binds tighter than together, together tighter than either.
        ("a > b | c", ["a b", "c"]),
        ("a > b & c", ["a b c", "a c b", "c a b"]),
        ("a & b | c", ["a b", "b a", "c"]),
        ("a > (b | c)", ["a b", "a c"]),
        ("(a & b) > c", ["a b c", "b a c"]),
        ("a > b & b > c", ["a b c"]),
        ("a | a & b", ["a", "a b", "b a"]),
        ("(a | b) & (b | c)", ["a c", "c a", "b"]),
    ],
)
def test_operators_mean_what_the_page_says(text: str, chains: list[str]) -> None:
    assert [" ".join(chain) for chain in chains_of(parse_policy(text))] == chains


def test_what_is_chained_freely_stands_anywhere_or_nowhere() -> None:
    found = chains_of(parse_policy("a > b"), free=("c",))
    assert [" ".join(chain) for chain in found] == ["a b", "a b c", "a c b", "c a b"]


@pytest.mark.parametrize(
    ("text", "place", "sentence"),
    [
        ("a > b & b > a", (1, 7), "joins what no chain can obey together: look at a, b"),
        ("a & (b > c & c > b)", (1, 12), "joins what no chain can obey together: look at b, c"),
        ("a &\n(a | b) & b", (2, 9), "joins what no chain can obey together: look at b"),
        ("a > b > a", (1, 7), "puts a before and behind itself"),
        ("a >", (1, 4), "the text ends where a function's name must stand"),
        ("", (1, 1), "the text ends where a function's name must stand"),
        ("a & > b", (1, 5), "'>' stands where a function's name must stand"),
        ("a b", (1, 3), "'b' follows without an operator"),
        ("a & (b", (1, 5), "opens a parenthesis that is never closed"),
        ("a\n) & b", (2, 1), "closes a parenthesis that was never opened"),
        ("a -> b", (1, 3), "'-' is neither a name nor one of"),
        ("(" * 21 + "a" + ")" * 21, (1, 21), "nested deeper than 20"),
        ("a" * 1001, (1, 1), "longer than 1000 characters"),
        ("a&b&c&d&e&f", (1, 1), "more than 200 chains; fix an order with >"),
        ("&".join(f"(a{n}|b{n})" for n in range(10)), (1, 1), "more than 200 chains"),
        ("&".join(f"v{n}" for n in range(21)), (1, 1), "names 21 functions, at most 20"),
    ],
)
def test_a_mistake_is_a_sentence_at_its_place(
    text: str, place: tuple[int, int], sentence: str
) -> None:
    with pytest.raises(DescriptorError) as caught:
        chains_of(parse_policy(text), text)
    (mistake,) = caught.value.mistakes
    assert sentence in mistake.message
    assert (mistake.line, mistake.column) == place


def test_a_policy_of_many_alternatives_is_refused_before_it_is_weighed() -> None:
    sides = ["|".join(">".join(pair) for pair in permutations(six, 2)) for six in SIXES]
    with pytest.raises(DescriptorError, match="too many alternatives") as caught:
        chains_of(parse_policy(f"({sides[0]})&({sides[1]})&({sides[2]})"))
    assert caught.value.mistakes[0].field == "operator"


def test_functions_are_those_that_the_library_knows(tmp_path: Path) -> None:
    folder = tmp_path / "vnfs" / "tap"
    folder.mkdir(parents=True)
    (folder / "vnf.yaml").write_text(
        "kind: vnf\nplacement: passive\nimage: tap\ncommand: [tap]\ndefault_vcpu: 25%\n"
    )
    library = DescriptorLibrary(tmp_path, paths.shipped("templates"))
    one, two = generate_chains("haproxy | squid > tinyproxy", library)
    assert (one.name, one.graph) == ("haproxy", Vnf("haproxy", "haproxy"))
    assert (two.name, two.graph) == (
        "squid-tinyproxy",
        Series((Vnf("squid", "squid"), Vnf("tinyproxy", "tinyproxy"))),
    )
    with pytest.raises(DescriptorError) as caught:
        generate_chains(
            "haproxi &\n  tinyproxy-haproxy & source & tap", library, ("haproxi", "nginx")
        )
    found = [(m.line, m.column, m.field, m.message) for m in caught.value.mistakes]
    assert [place[:3] for place in found] == [
        (1, 1, "vnf"),
        (2, 3, "vnf"),
        (2, 23, "vnf"),
        (2, 32, "vnf"),
        (1, 1, "free"),
    ]
    for (*_, message), sentence in zip(
        found,
        (
            "did you mean haproxy?",
            "which is a chain; name its functions",
            "which is a source, not a function",
            "a passive function",
            "which the policy names already",
        ),
        strict=True,
    ):
        assert sentence in message


def test_long_names_are_cut_and_still_differ() -> None:
    library = DescriptorLibrary(paths.shipped("templates"))
    text = "study-tinyproxy & study-haproxy & study-firewall & haproxy"
    names = [target.name for target in generate_chains(text, library)]
    assert len(set(names)) == len(names) == 24
    assert max(map(len, names)) <= 60
