"""Commands to Volcano Jobs: which concern one, and what they ask of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_pods import COMMAND_ISSUED, JobRequest
from fairlead.volcano.kinds import VC_JOB

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc


def is_for_job(command: Doc) -> bool:
    target = command.get("target") or {}
    return target.get("kind") == VC_JOB.kind and target.get("apiVersion") == VC_JOB.api_version


def request_of(command: Doc, *, noted: bool) -> JobRequest:
    """What a Command requests. With `noted`, the Job's status is to say that it was carried out."""
    metadata = command["metadata"]
    identity = (metadata.get("namespace", ""), metadata["name"], metadata["uid"]) if noted else None
    return JobRequest(event=COMMAND_ISSUED, action=command.get("action") or "", command=identity)
