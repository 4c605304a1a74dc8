"""How one would group short texts without `orch`: libraries that compare texts, and a threshold.

Runs in the environment of the peers. Reads texts and thresholds on standard input, writes for
each threshold the groups and the seconds.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence

Groups = list[list[int]]


def with_rapidfuzz(texts: Sequence[str], threshold: float) -> Groups:
    """Each text joins the first group that has a text as similar as the threshold."""
    from rapidfuzz import fuzz

    groups: Groups = []
    for number, text in enumerate(texts):
        for group in groups:
            if any(fuzz.token_set_ratio(text, texts[m]) >= threshold * 100 for m in group):
                group.append(number)
                break
        else:
            groups.append([number])
    return groups


def with_scikit_learn(texts: Sequence[str], threshold: float) -> Groups:
    """Words weighted by rarity, cosine distance, average linkage."""
    from sklearn.cluster import AgglomerativeClustering
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectors = TfidfVectorizer(stop_words="english", sublinear_tf=True).fit_transform(texts)
    labels = AgglomerativeClustering(
        n_clusters=None, metric="cosine", linkage="average", distance_threshold=1 - threshold
    ).fit_predict(vectors.toarray())
    groups: dict[int, list[int]] = {}
    for number, label in enumerate(labels):
        groups.setdefault(int(label), []).append(number)
    return list(groups.values())


METHODS: dict[str, Callable[[Sequence[str], float], Groups]] = {
    "rapidfuzz": with_rapidfuzz,
    "scikit-learn": with_scikit_learn,
}


def main(method: str) -> None:
    """Group once for each threshold; the first call loads the library."""
    asked = json.load(sys.stdin)
    group = METHODS[method]
    group(asked["texts"][:5], 0.5)
    found, seconds = [], []
    for threshold in asked["thresholds"]:
        before = time.perf_counter()
        found.append(group(asked["texts"], threshold))
        seconds.append(time.perf_counter() - before)
    json.dump({"groups": found, "seconds": seconds}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
