"""Makes src/fairlead/cluster/data/schema.json.gz: field names, types, merge keys and defaults of every kind we serve.

The facts come from three places that state them for machines: the OpenAPI v3 documents of a running kube-apiserver
(types, list types, merge keys, defaults), the struct declarations of k8s.io/api (which fields are pointers, which are
left out when empty, how Go calls their types, because error messages do), and the CustomResourceDefinitions of Volcano,
of scheduler-plugins and of Koordinator. Descriptions are left out, so the table holds names and types and no prose.

    tools/schema/generate.py --server https://127.0.0.1:6443 --token TOKEN --modules "$(go env GOMODCACHE)" \\
        --next-server https://127.0.0.1:6444 --next-token TOKEN

The second server is of the next version of Kubernetes; from it come the kinds that only it has (tools/real/next).
What custom resources say can be read again without servers, and then the rest of the table stays as it is:

    tools/schema/generate.py --definitions DIRECTORY
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import ssl
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from fairlead.core.model.kinds import POD_GROUP_BETA, WORKLOAD_BETA, Kind, served_kinds

TARGET = Path(__file__).parents[2] / "src/fairlead/cluster/data/schema.json.gz"
VERSIONS = {"k8s.io/apiextensions-apiserver": "v0.36.4", "k8s.io/apimachinery": "v0.36.4", "k8s.io/api": "v0.36.4"}
VOLCANO, SCHEDULER_PLUGINS = "volcano.sh/volcano@v1.14.1", "sigs.k8s.io/scheduler-plugins@v0.33.5"
KOORDINATOR = "github.com/koordinator-sh/koordinator@v1.8.0"
EXTRA_TYPES = (
    "io.k8s.api.autoscaling.v1.Scale", "io.k8s.api.core.v1.Binding", "io.k8s.api.policy.v1.Eviction",
    "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions", "io.k8s.apimachinery.pkg.apis.meta.v1.Status",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
)  # fmt: skip
NEXT = frozenset({POD_GROUP_BETA, WORKLOAD_BETA})
"""Kinds that the pinned server does not serve yet."""
NEXT_PACKAGES = {"k8s.io/api/scheduling/v1beta1": "v0.37.1"}


def strip(node: Any) -> Any:
    """Without prose: a `description` that is text is no field called description."""
    if isinstance(node, dict):
        return {
            key: strip(value) for key, value in node.items() if not (key == "description" and isinstance(value, str))
        }
    return [strip(value) for value in node] if isinstance(node, list) else node


class Server:
    def __init__(self, url: str, token: str) -> None:
        self.url, self.token = url, token
        self.context = ssl._create_unverified_context()

    def get(self, path: str) -> Any:
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        with urllib.request.urlopen(request, context=self.context) as answer:
            return json.load(answer)

    def columns(self, kind: Kind) -> list[Any]:
        """Name, type, format and priority of the columns that the server prints for a kind."""
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json;as=Table;v=v1;g=meta.k8s.io",
        }
        request = urllib.request.Request(self.url + kind.path(), headers=headers)
        with urllib.request.urlopen(request, context=self.context) as answer:
            columns = json.load(answer)["columnDefinitions"]
        return [[one["name"], one["type"], one["format"], one["priority"]] for one in columns]

    def schemas(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for path in self.get("/openapi/v3")["paths"]:
            found |= self.get(f"/openapi/v3/{path}").get("components", {}).get("schemas", {})
        return {name: strip(schema) for name, schema in found.items()}


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"].rpartition("/")[2]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(references(value) for value in node.values()))
    return set().union(*(references(value) for value in node)) if isinstance(node, list) else set()


def reachable(schemas: dict[str, Any], roots: set[str]) -> set[str]:
    seen: set[str] = set()
    todo = set(roots)
    while todo:
        name = todo.pop()
        seen.add(name)
        todo |= references(schemas[name]) - seen
    return seen


# -- Go -------------------------------------------------------------------------------------------------------------

STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.M | re.S)
FIELD = re.compile(r"^\t(?:(\w+) +)?(\S+)\s+`[^`]*json:\"([^\"]*)\"", re.M)


class GoTypes:
    """Struct declarations of one package, by a reading that suffices for API types."""

    def __init__(self, modules: Path) -> None:
        self.modules = modules
        self.packages: dict[str, dict[str, list[tuple[str, str]]]] = {}

    def package(self, path: str) -> dict[str, list[tuple[str, str]]]:
        if path not in self.packages:
            module = next(name for name in VERSIONS if path == name or path.startswith(name + "/"))
            version = NEXT_PACKAGES.get(path, VERSIONS[module])
            folder = self.modules / f"{module}@{version}" / path.removeprefix(module).strip("/")
            text = "\n".join(file.read_text() for file in sorted(folder.glob("*.go")) if "_test" not in file.name)
            self.packages[path] = {
                name: [(kind, tag) for _, kind, tag in FIELD.findall(re.sub(r"//[^\n]*", "", body))]
                for name, body in STRUCT.findall(text)
            }
        return self.packages[path]

    def fields(self, path: str, struct: str) -> dict[str, str]:
        """JSON name to Go type. A trailing `?` says that an empty value is left out, `~` that also an empty struct is;
        `ProbeHandler:` in front that the field comes from an embedded struct, which error messages name."""
        found: dict[str, str] = {}
        for kind, tag in self.package(path).get(struct, []):
            name, _, options = tag.partition(",")
            if name:
                mark = "~" if "omitzero" in options else "?" if "omitempty" in options else ""
                found[name] = qualified(kind, path) + mark
            elif "inline" in options:
                prefix, _, inner = kind.rpartition(".")
                embedded = self.fields({"metav1": META}.get(prefix, path), inner)
                found |= {field: f"{inner}:{text}" for field, text in embedded.items()}
        return found


META = "k8s.io/apimachinery/pkg/apis/meta/v1"
SCALARS = {"string", "bool", "int", "int32", "int64", "float64", "byte", "uint8", "uint64", "uint32"}


def qualified(kind: str, path: str) -> str:
    """`[]PullPolicy` in core/v1 is `[]v1.PullPolicy` in a message; import aliases become package names."""
    package = path.rpartition("/")[2]

    def full(match: re.Match[str]) -> str:
        word = match.group(0)
        if "." in word:
            alias, _, name = word.partition(".")
            return f"{'v1' if alias in ('metav1', 'corev1', 'core') else alias}.{name}"
        return word if word in SCALARS or word == "map" else f"{package}.{word}"

    return re.sub(r"[A-Za-z_][\w.]*", full, kind)


def go_path(definition: str) -> tuple[str, str] | None:
    if definition.startswith("io.k8s.api."):
        parts = definition.removeprefix("io.k8s.api.").split(".")
        return "k8s.io/api/" + "/".join(parts[:-1]), parts[-1]
    if definition.startswith("io.k8s.apiextensions-apiserver."):
        parts = definition.removeprefix("io.k8s.apiextensions-apiserver.").split(".")
        return "k8s.io/apiextensions-apiserver/" + "/".join(parts[:-1]), parts[-1]
    if definition.startswith("io.k8s.apimachinery."):
        parts = definition.removeprefix("io.k8s.apimachinery.").split(".")
        return "k8s.io/apimachinery/" + "/".join(parts[:-1]), parts[-1]
    return None


# -- custom resources -----------------------------------------------------------------------------------------------


def borrow_pod_types(node: Any) -> Any:
    """CRDs spell out whole pod templates; the same fields are already in the table."""
    if isinstance(node, dict):
        properties = node.get("properties")
        if isinstance(properties, dict):
            spec = properties.get("spec")
            if isinstance(spec, dict) and {"containers", "nodeSelector"} <= set(spec.get("properties", {})):
                return {"$ref": "#/components/schemas/io.k8s.api.core.v1.PodTemplateSpec"}
        return {key: borrow_pod_types(value) for key, value in node.items()}
    return [borrow_pod_types(value) for value in node] if isinstance(node, list) else node


def definition_files(modules: Path) -> list[Path]:
    return [
        *sorted((modules / VOLCANO / "config/crd/volcano/bases").glob("*.yaml")),
        *sorted((modules / VOLCANO / "config/crd/jobflow/bases").glob("*.yaml")),
        modules / SCHEDULER_PLUGINS / "config/crd/bases/scheduling.x-k8s.io_podgroups.yaml",
        *sorted((modules / KOORDINATOR / "config/crd/bases").glob("*.yaml")),
    ]


def custom_resources(files: Iterable[Path]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Definitions by name, and printer columns by `group/version/Kind`."""
    types: dict[str, Any] = {}
    columns: dict[str, Any] = {}
    for file in files:
        spec = yaml.safe_load(file.read_text())["spec"]
        for version in spec["versions"]:
            group, kind = spec["group"], spec["names"]["kind"]
            schema = borrow_pod_types(strip(version["schema"]["openAPIV3Schema"]))
            schema["properties"]["metadata"] = {
                "$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
            }
            schema["x-kubernetes-group-version-kind"] = [{"group": group, "version": version["name"], "kind": kind}]
            name = ".".join([*reversed(group.split(".")), version["name"], kind])
            types[name] = schema
            columns[f"{group}/{version['name']}/{kind}"] = strip(version.get("additionalPrinterColumns", []))
    return types, columns


def of_kind(schemas: dict[str, Any], kind: Kind) -> str | None:
    wanted = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    for name, schema in schemas.items():
        if wanted in schema.get("x-kubernetes-group-version-kind", []) and name.endswith("." + kind.kind):
            return name
    return None


def add_definitions(directory: Path) -> None:
    """Take what the definitions of a directory say of kinds that we serve into the table that is there."""
    table = json.loads(gzip.decompress(TARGET.read_bytes()))
    custom, columns = custom_resources(sorted(directory.glob("*.yaml")))
    for kind in served_kinds():
        key, name = f"{kind.api_version}/{kind.kind}", of_kind(custom, kind)
        if name is not None:
            table["kinds"][key], table["types"][name], table["printed"][key] = name, custom[name], columns[key]
            table["custom"] = sorted({*table["custom"], name})
    write(table)


def write(table: dict[str, Any]) -> None:
    data = json.dumps(table, separators=(",", ":"), sort_keys=True).encode()
    TARGET.write_bytes(gzip.compress(data, mtime=0))
    sizes = f"{len(data)} bytes, {TARGET.stat().st_size} packed"
    print(f"{len(table['types'])} types of {len(table['kinds'])} kinds, {sizes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--definitions", type=Path)
    parser.add_argument("--server")
    parser.add_argument("--token")
    parser.add_argument("--next-server")
    parser.add_argument("--next-token")
    parser.add_argument("--modules", type=Path)
    options = parser.parse_args()
    if options.definitions is not None:
        add_definitions(options.definitions)
        return
    missing = [name for name, value in vars(options).items() if value is None and name != "definitions"]
    if missing:
        parser.error("give " + ", ".join("--" + name.replace("_", "-") for name in missing) + ", or --definitions")
    server, go = Server(options.server, options.token), GoTypes(options.modules)
    coming = Server(options.next_server, options.next_token)
    schemas = coming.schemas() | server.schemas()
    custom, columns = custom_resources(definition_files(options.modules))
    schemas |= custom
    kinds = {f"{kind.api_version}/{kind.kind}": of_kind(schemas, kind) for kind in served_kinds()}
    named = {key: name for key, name in kinds.items() if name}
    wanted = reachable(schemas, {*named.values(), *EXTRA_TYPES})
    types = {name: schemas[name] for name in sorted(wanted)}
    structs = {name: go.fields(*where) for name in types if (where := go_path(name))}
    table = {
        "version": server.get("/version")["gitVersion"],
        "kinds": dict(sorted(named.items())),
        "custom": sorted(set(custom) & wanted),
        "types": types,
        "go": {name: fields for name, fields in structs.items() if fields},
        "printed": {key: columns[key] for key in sorted(columns) if key in named},
        "columns": {
            f"{kind.api_version}/{kind.kind}": (coming if kind in NEXT else server).columns(kind)
            for kind in served_kinds()
            if f"{kind.api_version}/{kind.kind}" not in columns
        },
    }
    write(table)
    print("open:", sorted(set(kinds) - set(named)))


if __name__ == "__main__":
    main()
