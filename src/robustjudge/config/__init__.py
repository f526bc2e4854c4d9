"""Configuration: one YAML file, a published schema, unknown keys refused with the nearest known one."""

from robustjudge.config.build import plan_of
from robustjudge.config.files import read_config
from robustjudge.config.schema import Config

__all__ = ["Config", "plan_of", "read_config"]
