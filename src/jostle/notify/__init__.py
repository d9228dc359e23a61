"""Notifications: what happened in the store, told by mail, webhook or chat. A process of its own, never the engine."""
