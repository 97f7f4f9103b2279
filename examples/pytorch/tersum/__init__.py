# SPDX-FileCopyrightText: Copyright (c) 2026 The tersum authors
# SPDX-License-Identifier: Apache-2.0

"""Compressed means of arrays over ranks, by numpy and a transport of the caller's. tersum_torch is the same for PyTorch."""

from .codec import Codec, check_saved
from .exchange import Exchange, Transport
from .library import TersumError, presets, version

__all__ = ["Codec", "Exchange", "TersumError", "Transport", "check_saved", "presets", "version"]
