from __future__ import annotations

import json

import pytest

from colmem.contract.errors import ConfigError
from colmem.retrieval.settings import RankingSettings


def test_settings_survive_json() -> None:
    settings = RankingSettings(weight_vector=0.25, dialogue=False, rescore_top=7)
    assert RankingSettings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    assert RankingSettings.from_dict({}) == RankingSettings()


@pytest.mark.parametrize(
    "values",
    [
        {"weight": 1},
        {"weight_vector": 1.5},
        {"weight_vector": float("nan")},
        {"weight_vector": "0.5"},
        {"weight_vector": True},
        {"weight_vector": 0.7, "weight_maxsim": 0.7},
        {"rescore_top": 1.5},
        {"pool_per_leg": 10**9},
        {"dialogue": 1},
    ],
)
def test_what_is_no_setting_is_refused_by_name(values: dict) -> None:
    with pytest.raises(ConfigError, match=next(iter(values))):
        RankingSettings.from_dict(values)
