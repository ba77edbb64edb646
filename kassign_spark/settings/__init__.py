"""Settings: how to compute; and what clients and brokers refuse in theirs."""

from kassign_spark.settings.client_settings import check_settings
from kassign_spark.settings.computing import Settings, load_settings

__all__ = ["Settings", "check_settings", "load_settings"]
