# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Which parameter is compressed how."""

from __future__ import annotations

import dataclasses
import fnmatch
import json
import os
from typing import Any, Mapping, Union

from tersum import presets

NONE = "none"  # the codec of parameters that are averaged in float32, uncompressed


@dataclasses.dataclass(frozen=True)
class Rule:
    """What holds for the parameters whose name matches `pattern`, as fnmatch does. Members that are None say nothing.

    codec: a preset, or "none". weight: multiplies the parameter's energies where chunks are chosen. bits, weighting and
    clip: parameters of the preset, as in tersum_c.h.
    """

    pattern: str = "*"
    codec: str | None = None
    weight: float | None = None
    bits: float | None = None
    weighting: float | None = None
    clip: float | None = None


@dataclasses.dataclass(frozen=True)
class Configuration:
    """A default and rules, of which the last that matches and says something of a member decides it."""

    default: Rule
    rules: tuple = ()

    @staticmethod
    def of(given: Any) -> Configuration:
        """From a Configuration, the name of a preset, a dictionary, or the path of a JSON file of this form:

        {"version": 1, "default": "allocated_4", "rules": [{"pattern": "*.bias", "codec": "none"}, ...]}
        """
        if isinstance(given, Configuration):
            return given
        if isinstance(given, str) and (given == NONE or given in presets()):
            return Configuration(Rule(codec=given))
        if isinstance(given, (str, os.PathLike)):
            if not os.path.isfile(given):
                raise ValueError(f"codec {os.fspath(given)!r} is neither a preset nor a file: tersum_torch.presets() lists "
                                 "the former")
            with open(given, encoding="utf-8") as file:
                given = json.load(file)
        if given.get("version") != 1:
            raise ValueError(f"the configuration has version {given.get('version')!r}; this package reads version 1")
        default = given.get("default")
        if default is None:
            raise ValueError('the configuration has no "default", which names the preset of all other parameters')
        return Configuration(_rule(default if isinstance(default, dict) else {"codec": default}),
                             tuple(_rule(rule) for rule in given.get("rules", ())))

    def described(self) -> Any:
        """What `of` takes, as plain values: the name of a preset, or a dictionary."""
        if not self.rules and self.default == Rule(codec=self.default.codec):
            return self.default.codec
        members = [{k: v for k, v in dataclasses.asdict(rule).items() if v is not None} for rule in (self.default, *self.rules)]
        return {"version": 1, "default": members[0], "rules": members[1:]}

    def check_names(self, names: list[str]) -> None:
        """Raises if a rule matches no parameter of a model."""
        for rule in self.rules:
            if not any(fnmatch.fnmatchcase(name, rule.pattern) for name in names):
                raise ValueError(f"the rule {rule.pattern!r} matches no parameter; the model has {', '.join(names[:8])}"
                                 f"{', ...' if len(names) > 8 else ''}")

    def rule_for(self, name: str | None) -> Rule:
        """All members decided for the parameter of this name; None for a parameter without a name."""
        decided = {field.name: getattr(self.default, field.name) for field in dataclasses.fields(Rule)}
        for rule in self.rules:
            if name is not None and fnmatch.fnmatchcase(name, rule.pattern):
                decided.update({k: v for k, v in dataclasses.asdict(rule).items() if v is not None})
        decided["pattern"] = name or "*"
        return Rule(**decided)


# What a codec can be given as: a preset, a configuration or the path of one.
Codecs = Union[str, "os.PathLike[str]", Mapping[str, Any], Configuration]


def _rule(members: Any) -> Rule:
    known = {field.name for field in dataclasses.fields(Rule)}
    for member in members:
        if member not in known and not member.startswith("_"):  # those are comments
            raise ValueError(f"the configuration has a rule with {member!r}; it may have {sorted(known)}")
    rule = Rule(**{k: v for k, v in members.items() if k in known})
    if rule.codec is not None and rule.codec != NONE and rule.codec not in presets():
        raise ValueError(f"the configuration names {rule.codec!r}, which is no preset: tersum_torch.presets() lists them")
    return rule
