"""The kubeconfig of `fairlead up` never costs anybody a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cli.kubeconfig_file import KubeconfigFile
from fairlead.errors import FairleadError


def kubeconfig(directory: Path, *, chosen: bool = False, data: Path | None = None) -> KubeconfigFile:
    return KubeconfigFile(directory / "fairlead.kubeconfig", chosen=chosen, data=data)


def test_a_free_name_is_used_and_freed_again(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path)
    assert file.write(b"ours") == tmp_path / "fairlead.kubeconfig"
    assert file.path.stat().st_mode & 0o077 == 0, "others could read the token"
    assert not file.moved
    file.remove()
    assert list(tmp_path.iterdir()) == []


def test_the_default_name_gives_way_to_a_file_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "fairlead.kubeconfig").write_bytes(b"precious")
    (tmp_path / "fairlead-2.kubeconfig").symlink_to(tmp_path / "nowhere")
    file = kubeconfig(tmp_path)
    file.check()
    assert file.write(b"ours") == tmp_path / "fairlead-3.kubeconfig"
    assert file.moved
    file.remove()
    assert (tmp_path / "fairlead.kubeconfig").read_bytes() == b"precious"
    assert not (tmp_path / "fairlead-3.kubeconfig").exists()


def test_a_chosen_name_that_is_taken_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fairlead.kubeconfig").write_bytes(b"precious")
    file = kubeconfig(tmp_path, chosen=True)
    with pytest.raises(FairleadError, match="was not written by this cluster"):
        file.check()
    with pytest.raises(FairleadError, match="was not written by this cluster"):
        file.write(b"ours")
    assert (tmp_path / "fairlead.kubeconfig").read_bytes() == b"precious"


def test_what_somebody_else_has_written_meanwhile_is_not_removed(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path)
    file.write(b"ours")
    file.path.write_bytes(b"merged with another cluster's")
    file.remove()
    assert file.path.read_bytes() == b"merged with another cluster's"


def test_a_cluster_with_data_writes_over_its_own_file_only(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    kubeconfig(tmp_path, chosen=True, data=data).write(b"first start")
    again = kubeconfig(tmp_path, chosen=True, data=data)
    again.check()
    assert again.write(b"second start, another port").read_bytes() == b"second start, another port"
    again.path.write_bytes(b"edited by hand")
    with pytest.raises(FairleadError):
        kubeconfig(tmp_path, chosen=True, data=data).check()
    assert kubeconfig(tmp_path, data=data).write(b"third").name == "fairlead-2.kubeconfig"


def test_a_directory_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(FairleadError, match=r"fairlead\.kubeconfig cannot be written: No such file or directory"):
        kubeconfig(tmp_path / "gone").write(b"ours")
