"""Turns the results of `starvelab-grader run` into those of Gradescope."""

import json
import sys
from typing import Any


def gradescope(results: Any) -> dict[str, Any]:
    """Return what Gradescope reads: a test for each exercise, and what only instructors see."""
    tests: list[dict[str, Any]] = []
    for each in results["exercises"]:
        test = {"name": f"{each['notebook']}: {each['title']}", "visibility": "visible"}
        if each["points"] is None:
            test |= {"output": f"not marked yet (of {each['maximum']:g})"}
        else:
            output = "\n".join(each["messages"])
            test |= {"score": each["points"], "max_score": each["maximum"], "output": output}
        tests.append(test)
    if remarks := results.get("to_look_at"):
        name = "A person should look at this"
        tests.append({"name": name, "output": "\n".join(remarks), "visibility": "hidden"})
    texts = [results["failed"]] if "failed" in results else [*results["messages"], results["protection"]]
    scores = [test["score"] for test in tests if "score" in test]
    return {"score": sum(scores), "output": "\n".join(texts), "stdout_visibility": "hidden", "tests": tests}


if __name__ == "__main__":
    json.dump(gradescope(json.load(sys.stdin)), sys.stdout, indent=1)
