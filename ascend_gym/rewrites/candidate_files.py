"""Candidates as files by path."""

from __future__ import annotations

from collections.abc import Mapping

from ascend_gym.core.records import Candidate, SourceFile, Sources


def with_texts(candidate: Candidate, texts: Mapping[str, str]) -> Candidate:
    """Return a copy with the texts of the files in ``texts`` replaced.

    Raises:
        KeyError: the candidate has no file with such a path.
    """
    unknown = sorted(set(texts) - set(candidate.texts))
    if unknown:
        raise KeyError(f"no such source files: {unknown}; the candidate has {sorted(candidate.texts)}")
    return Candidate(
        host=_with_texts(candidate.host, texts),
        kernel=_with_texts(candidate.kernel, texts),
        build_flags=candidate.build_flags,
    )


def _with_texts(sources: Sources, texts: Mapping[str, str]) -> Sources:
    if not any(file.path in texts for file in sources.files):
        return sources
    files = tuple(
        SourceFile(path=file.path, text=texts[file.path]) if file.path in texts else file
        for file in sources.files
    )
    return Sources(files=files, main=sources.main)
