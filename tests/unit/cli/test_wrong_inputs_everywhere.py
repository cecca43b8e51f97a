"""Wrong inputs to every command and every kind of file: never a traceback, never silence, and the right exit code.

Exit code 2 is for wrong arguments and for input files that cannot be used, 1 for failure: a cluster that is not there
or does not answer. `@NAME` in the words stands for a file of FILES, `@@` for a name of a file that does not exist.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fairlead.cli.main import cli

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "%s"}}]
users: [{name: u, user: {token: t}}]
"""
KUBE = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NODE = '{"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}'
POD = '{"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}'


def plugin_args(name: str, args: str) -> str:
    return f"{KUBE}profiles: [{{pluginConfig: [{{name: {name}, args: {args}}}]}}]\n"


def tier(plugin: str) -> str:
    return f'actions: "allocate"\ntiers:\n- plugins:\n  - {plugin}\n'


KUBE_CONFIGS = [
    KUBE + "profiles: 3",
    KUBE + "profiles: [3]",
    KUBE + "profiles: [{plugins: x}]",
    KUBE + "profils: []",
    KUBE + "profiles: [{schedulerName: a}, {schedulerName: a}]",
    KUBE + "profiles: [{schedulerName: ''}]",
    KUBE + "parallelism: 0",
    KUBE + "parallelism: many",
    KUBE + "percentageOfNodesToScore: 101",
    KUBE + "percentageOfNodesToScore: -1",
    KUBE + "podInitialBackoffSeconds: 0",
    KUBE + "podMaxBackoffSeconds: -1",
    KUBE + "leaderElection: false",
    KUBE + "leaderElection: {leaseDuration: soon}",
    KUBE + "leaderElection: {leaderElect: true, leaseDuration: 1s, renewDeadline: 2s}",
    KUBE + "clientConnection: {qps: fast}",
    KUBE + "extenders: {}",
    KUBE + "extenders: [{urlPrefix: 3}]",
    KUBE + "extenders: [{urlPrefix: 'http://x', prioritizeVerb: p, weight: 0}]",
    KUBE + "extenders: [{urlPrefix: 'http://x', bindVerb: b}, {urlPrefix: 'http://y', bindVerb: b}]",
    KUBE + "profiles: [{plugins: {multiPoint: {enabled: [{name: NoSuchPlugin}]}}}]",
    KUBE + "profiles: [{plugins: {queueSort: {enabled: [{name: NodeName}]}}}]",
    KUBE + "profiles: [{plugins: {nowhere: {}}}]",
    KUBE + "profiles: [{plugins: {score: {enabled: NodeName}}}]",
    KUBE + "profiles: [{plugins: {multiPoint: {enabled: [{name: 'no.such.module:Thing'}]}}}]",
    KUBE + "profiles: [{pluginConfig: [{args: {}}]}]",
    KUBE + "profiles: [{pluginConfig: {}}]",
    KUBE + "profiles: [{percentageOfNodesToScore: x}]",
    plugin_args("NodeResourcesFit", "false"),
    plugin_args("NodeResourcesFit", "{scoringStrategy: {type: Best}}"),
    plugin_args("NodeResourcesFit", "{scoringStrategy: {resources: [{name: cpu, weight: 101}]}}"),
    plugin_args("NodeResourcesFit", "{ignoredResources: [3]}"),
    plugin_args("NodeResourcesFit", "{ignored: []}"),
    plugin_args("NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}]}"),
    plugin_args("InterPodAffinity", "{hardPodAffinityWeight: 101}"),
    plugin_args("InterPodAffinity", "[]"),
    plugin_args("PodTopologySpread", "{defaultingType: Some}"),
    plugin_args("PodTopologySpread", "{x: 1}"),
    plugin_args("PodTopologySpread", "{defaultingType: List, defaultConstraints: [{maxSkew: 0}]}"),
    plugin_args("DefaultPreemption", "{minCandidateNodesPercentage: 101}"),
    plugin_args("VolumeBinding", "x"),
    plugin_args("VolumeBinding", "{bindTimeoutSeconds: -1}"),
    plugin_args("NodeAffinity", "{addedAffinity: 3}"),
    plugin_args("DynamicResources", "{filterTimeout: -1s}"),
    plugin_args("DefaultPreemption", "{kind: FitArgs}"),
    "apiVersion: v1\nkind: Secret\n",
    "kind: KubeSchedulerConfiguration\n",
    "apiVersion: 3\nkind: []\n",
    "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n",
    "a: [1\n",
    "[]\n",
    "3\n",
    "",
    "\x00\x01",
    "kind: Policy\napiVersion: v1\npredicates: 3\n",
    KUBE + "a: &a [*a]\n",
    "- a\n- b\n",
    "just words\n",
    "kind: Policy\napiVersion: v1\npriorities: [{name: Nothing, weight: 1}]\n",
    "---\na: 1\n---\nb: 2\n",
]
VOLCANO_CONFS = [
    'actions: "alocate"\ntiers: []\n',
    "actions: 3\ntiers: []\n",
    'actions: ""\ntiers: []\n',
    'actions: "allocate"\ntiers: 3\n',
    'actions: "allocate"\ntiers: [3]\n',
    tier("{name: gangs}"),
    tier("3"),
    'actions: "allocate"\ntiers: [{plugins: gang}]\n',
    tier("{}"),
    tier("{name: gang, enableJobReady: maybe}"),
    tier("{name: gang, enabledNothing: true}"),
    tier("{name: gang, arguments: 3}"),
    'actions: "allocate"\ntiers: []\nconfigurations: 3\n',
    'actions: "allocate"\ntiers: []\nnothing: 3\n',
    'actions: "allocate"\ntiers: []\nconfigurations: [{name: allocate, arguments: []}]\n',
]
RECORDINGS = [
    "not json",
    "[]",
    "3",
    '{"a": 1}',
    '{"decisions": []}',
    '{"decisions": 3, "nodes": [], "existing": []}',
    '{"decisions": [3], "nodes": [], "existing": []}',
    '{"decisions": [], "nodes": 3, "existing": []}',
    '{"decisions": [{"pod": 3}], "nodes": [], "existing": []}',
    '{"steps": []}',
    '{"steps": 3, "namespace": "x"}',
    f'{{"decisions": [{{"pod": {POD}, "node": 3}}], "nodes": [{NODE}], "existing": []}}',
    f'{{"decisions": [{{"pod": {POD}, "extenders": [3]}}], "nodes": [{NODE}], "existing": []}}',
    f'{{"decisions": [{{"pod": {POD}, "extenders": [{{"name": "e", "filter": 3}}]}}], "nodes": [], "existing": []}}',
    f'{{"decisions": [], "nodes": [{NODE}], "existing": []}}',
    '{"steps": [], "conf": 3, "nodes": [], "pods": [], "after": {}}',
    f'{{"decisions": [{{"pod": {POD.replace("{}", "3")}}}], "nodes": [{{"metadata": 3}}], "existing": []}}',
    "\x1f\x8bx",
]
NODES_FILES = [
    "3",
    "[]",
    "a: b",
    "- 3",
    "- cpu: x",
    "- {shape: 3}",
    "kind: Pod\n",
    "[1",
    "",
    "- {count: -1, cpu: 4}",
    "apiVersion: v1\nkind: Node\nmetadata: 3\n",
    "apiVersion: v1\nkind: Node\nmetadata: {name: 'BAD NAME'}\n",
]
FILES = {
    "nobody": KUBECONFIG % "https://127.0.0.1:1",
    "no-url": KUBECONFIG % "garbage",
    "words": "just words",
    "empty": "",
    "list": "[1, 2]",
    "not-utf8": "\udcff",
    "kube": KUBE,
    "half.gz": "\x1f\x8b\x08",
    "no-context": KUBECONFIG.replace("current-context: c", "current-context: d") % "https://127.0.0.1:1",
    "shapeless": "apiVersion: v1\nkind: Config\nclusters: 3\n",
}
WRONG = [
    "",
    "upp",
    "--nothing",
    "version x",
    "version -o xml",
    "demo x",
    "demo --fast",
    "completion",
    "completion tcsh",
    # up
    "up x",
    "up --nodes -1",
    "up --nodes many",
    "up --zones -2",
    "up --zones",
    "up --port 70000",
    "up --port x",
    "up --shape gpu=8",
    "up --shape cpu=4,cpu=8",
    "up --shape cpu=-4",
    "up --shape cpu",
    "up --shape ,",
    "up --shape =",
    "up --shape 0x:cpu=1",
    "up --shape cpu=4x",
    "up --shape taint.a=b:Never,cpu=1",
    "up --shape -1:cpu=1",
    "up --bind nonsense.invalid",
    "up --bind 999.1.1.1",
    "up --device x",
    "up --device gpu:-1",
    "up --device :3",
    "up --scheduler some",
    "up --controllers nothing",
    "up --controllers none,all",
    "up --config @@",
    "up --config @words",
    "up --nodes-file @@",
    "up --nodes-file @words",
    "up --from @@",
    "up --from @words",
    "up --from @empty",
    "up --schedule-period 1s",
    "up --schedule-period x --volcano-conf default",
    "up --volcano-conf @@",
    "up --volcano-conf @words",
    "up --volcano-conf @empty",
    "up --feature-gates X=true",
    "up --feature-gates x",
    "up --feature-gates GenericWorkload=maybe",
    "up --data @words",
    "up --kubeconfig ~/.kube/config",
    "up --fsync=3",
    "up --kubeconfig",
    # scheduler and controllers
    "scheduler x",
    "scheduler --profiling",
    "scheduler --config @@",
    "scheduler --config @words",
    "scheduler --config",
    "scheduler --secure-port 99999",
    "scheduler --secure-port x",
    "scheduler --write-config-to /nonexistent/x",
    "scheduler --tls-cert-file @words",
    "scheduler --policy-config-file @@",
    "scheduler --config @kube --policy-config-file @words",
    "scheduler --volcano-controllers",
    "scheduler --feature-gates x",
    "scheduler --bind-address 0.0.0.0 --config @kube",
    "scheduler --leader-elect-lease-duration x",
    "scheduler --volcano-conf @@",
    "scheduler --volcano-conf @words",
    "controllers x",
    "controllers --controllers nothing",
    "controllers --leader-elect=maybe",
    # questions
    "explain nothing x",
    "explain pod",
    "explain pod ''",
    "explain pod x y",
    "explain pod x --server garbage",
    "explain pod x -o xml",
    "explain pod/",
    "explain pod x --nodes many",
    "explain deployment",
    "explain waiting x",
    "explain pod x --kubeconfig @@",
    "explain pod x --kubeconfig @words",
    "explain pod x --kubeconfig @shapeless",
    "explain pod x --kubeconfig @no-context",
    "explain pod x --kubeconfig @nobody --context other",
    "queue",
    "queue nothing",
    "queue get",
    "queue list x",
    "queue list -o xml",
    "queue explain",
    "queue explain x --server garbage",
    "queue list --kubeconfig @@",
    "queue get x --kubeconfig @shapeless",
    "nodes",
    "nodes add",
    "nodes add gpu=8",
    "nodes add cpu=x",
    "nodes fail",
    "nodes remove",
    "nodes recover",
    "nodes add cpu=4 --kubeconfig @@",
    "nodes fail x --kubeconfig @words",
    "job",
    "job nothing",
    "job run --replicas -1",
    "job run --replicas x",
    "job view",
    "job wait",
    "job delete",
    "job run a -f @@",
    "job run -f @words",
    # files
    "config",
    "config check",
    "config check @@",
    "config check @words",
    "config check @not-utf8",
    "config check .",
    "config check @kube --feature-gates x",
    "config effective @@",
    "config effective -o xml",
    "config diff @kube",
    "config diff @kube @@",
    "config diff @words @kube",
    "config check default --queues @@",
    "config check default --queues @words",
    "config check default --queues @kube --kubeconfig @nobody",
    "snapshot",
    "snapshot show",
    "snapshot show @@",
    "snapshot show @words",
    "snapshot show @empty",
    "snapshot show @half.gz",
    "snapshot load @words --data /nonexistent/x",
    "snapshot load @@ --data x",
    "snapshot save",
    "snapshot save x --kubeconfig @@",
    "record",
    "record x --count 0",
    "record x --count many",
    "record x --kubeconfig @words",
    "replay",
    "replay @@",
    "replay .",
    "replay @empty",
    "replay @words",
    "replay @half.gz",
    "replay @list",
    "replay @words --config @@",
    "replay @empty --family x",
    "bug-report x",
    "bug-report --config @@",
    "lab nothing",
]
FAILING = [
    "explain pod x --kubeconfig @nobody",
    "explain job x --kubeconfig @nobody",
    "explain --kubeconfig @nobody",
    "explain deployment x --kubeconfig @nobody",
    "explain podgroup x --kubeconfig @nobody",
    "explain pod x --server http://127.0.0.1:1",
    "queue list --kubeconfig @nobody",
    "queue get x --kubeconfig @nobody",
    "queue explain x --kubeconfig @nobody",
    "nodes add cpu=4 --kubeconfig @nobody",
    "nodes fail x --kubeconfig @nobody",
    "snapshot save x --kubeconfig @nobody",
    "job list --kubeconfig @nobody",
    "job run a --image x --kubeconfig @nobody",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (directory / name).write_bytes(text.encode("latin-1" if name.endswith("gz") else "utf-8", "surrogateescape"))
    return directory


def run(files: Path, words: list[str]) -> tuple[int, str]:
    filled = [
        str(files / (word[1:] if word != "@@" else "no-such-file")) if word[:1] == "@" else word for word in words
    ]
    result = CliRunner().invoke(cli, filled, env={"COLUMNS": "80", "HOME": str(files)})
    assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.exc_info)
    assert "Traceback" not in result.output, words
    assert result.output.strip(), (words, "silence")
    return result.exit_code, result.output


@pytest.fixture(autouse=True)
def _elsewhere(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster of the machine is found by accident."""
    monkeypatch.chdir(files)
    monkeypatch.delenv("KUBECONFIG", raising=False)


@pytest.mark.parametrize("words", WRONG)
def test_wrong_usage_ends_with_exit_code_2(files: Path, words: str) -> None:
    code, output = run(files, [word.strip("'") for word in words.split()])
    assert code == 2, output


@pytest.mark.parametrize("words", FAILING)
def test_a_cluster_that_is_not_there_ends_with_exit_code_1(files: Path, words: str) -> None:
    code, output = run(files, words.split())
    assert code == 1, output


@pytest.mark.parametrize(
    ("command", "text"),
    [
        *(("config check", text) for text in (*KUBE_CONFIGS, *VOLCANO_CONFS)),
        *(("replay", text) for text in RECORDINGS),
        *(("up --nodes-file", text) for text in NODES_FILES),
        *(("snapshot show", text) for text in ("3", "[]", "{}", '{"kind": 3}', '{"kind": "Snapshot"}\n3\n')),
    ],
)
def test_a_file_that_cannot_be_used_ends_with_exit_code_2(files: Path, command: str, text: str) -> None:
    file = files / "tried"
    file.write_bytes(text.encode("latin-1"))
    code, output = run(files, [*command.split(), str(file)])
    assert code == 2, output
    assert "tried" in output, output


def test_there_are_two_hundred_of_them() -> None:
    listed = (WRONG, FAILING, KUBE_CONFIGS, VOLCANO_CONFS, RECORDINGS, NODES_FILES)
    assert sum(map(len, listed)) >= 200
