"""States and the groups of them have one home."""

import ast
import pathlib

from jostle.core import states

GROUPS = [set(group) for group in (states.UNFINISHED, states.FINAL, states.UNSUCCESSFUL, states.OPEN, states.ALL)]
SOURCE = pathlib.Path(states.__file__).parents[1]


def test_no_group_of_states_is_typed_anywhere_else():
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Tuple | ast.List | ast.Set) and path.stem != "states":
                words = {item.value for item in node.elts if isinstance(item, ast.Constant)}
                found += [f"{path.name}:{node.lineno}"] if len(words) == len(node.elts) and words in GROUPS else []
    assert found == []


def test_each_state_is_final_or_has_a_way_on():
    assert set(states.UNFINISHED) | set(states.FINAL) == set(states.ALL) == set(states.SUMMED)
    assert set(states.OPEN) < set(states.UNFINISHED) and states.SUCCEEDED not in states.UNSUCCESSFUL
