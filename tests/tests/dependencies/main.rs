//! The allowed dependencies of crates and modules: they point one way only, and `delivery` contains
//! only rules.
//!
//! These tests enforce the absences that the architecture promises, using the graph that cargo
//! itself resolves. They also restrict the functions' calls of AWS, and the names in the code.

mod aws_calls;
mod files;
mod modules;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package, PackageId};

/// The packages of this workspace, from the rules up. Each may depend only on packages in earlier
/// lines, and on external ones.
const LAYERS: [&[&str]; 8] = [
    &["delivery", FROZEN],
    &["dialects"],
    &["adapters"],
    &["dispatch", "deadletter", "ingress", "deadletters"],
    &["local", "notify"],
    &["lastmile"],
    &["lastmile-tests"],
    BENCH,
];

/// The reader of an older version. Code shared with the current version would change with it.
const FROZEN: &str = "wire-v1";

/// The packages that measure the functions from outside, and depend on no package of this
/// workspace.
const BENCH: &[&str] = &["bench", "bench-floor", "bench-put-loop"];

/// The target of the functions. Dependencies for other systems do not count.
const DEPLOYED_ON: &str = "x86_64-unknown-linux-gnu";

fn metadata() -> Metadata {
    let mut command = MetadataCommand::new();
    command.manifest_path(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    command.other_options(["--filter-platform".to_owned(), DEPLOYED_ON.to_owned()]);
    command.exec().expect("cargo describes the workspace")
}

fn layer(name: &str) -> Option<usize> {
    LAYERS.iter().position(|names| names.contains(&name))
}

fn package<'a>(metadata: &'a Metadata, name: &str) -> &'a Package {
    let found = metadata.workspace_packages().into_iter().find(|package| package.name == name);
    found.unwrap_or_else(|| panic!("{name} is no package of ours"))
}

/// Returns these packages and all of their direct and indirect normal dependencies.
fn compiled_into<'a>(
    metadata: &'a Metadata,
    roots: impl IntoIterator<Item = &'a PackageId>,
) -> Vec<&'a Package> {
    let resolve = metadata.resolve.as_ref().expect("cargo resolves dependencies");
    let nodes: BTreeMap<&PackageId, _> =
        resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let mut reached = BTreeSet::new();
    let mut next: Vec<&PackageId> = roots.into_iter().collect();
    while let Some(id) = next.pop() {
        if reached.insert(id) {
            let normal = nodes[id].deps.iter().filter(|dependency| {
                dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal)
            });
            next.extend(normal.map(|dependency| &dependency.pkg));
        }
    }
    reached.into_iter().map(|id| &metadata[id]).collect()
}

#[test]
fn every_package_has_its_layer() {
    let metadata = metadata();
    let names: BTreeSet<String> =
        metadata.workspace_packages().into_iter().map(|package| package.name.to_string()).collect();
    let layered: BTreeSet<String> =
        LAYERS.iter().copied().flatten().map(|name| (*name).to_owned()).collect();
    assert_eq!(names, layered);
}

#[test]
fn dependencies_point_one_way_even_in_tests() {
    let metadata = metadata();
    for package in metadata.workspace_packages() {
        for dependency in &package.dependencies {
            if let Some(below) = layer(&dependency.name) {
                let own =
                    layer(&package.name).unwrap_or_else(|| panic!("{} has no layer", package.name));
                assert!(
                    below < own,
                    "{} may not depend on {} ({})",
                    package.name,
                    dependency.name,
                    dependency.kind
                );
            }
        }
    }
}

/// Returns the names and versions that are compiled into one package alone, one per line.
///
/// The metadata resolves the whole workspace, where other packages enable features that this one
/// does not.
fn compiled_alone(package: &str) -> String {
    let arguments = [
        "tree",
        "--package",
        package,
        "--edges",
        "normal",
        "--prefix",
        "none",
        "--target",
        DEPLOYED_ON,
    ];
    let tree = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    let tree = tree.expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    String::from_utf8(tree.stdout).expect("names are text")
}

#[test]
fn the_rules_know_no_runtime_no_cloud_no_network_and_no_chance() {
    const BANNED: [&str; 13] = [
        "async",
        "aws",
        "futures",
        "getrandom",
        "h2",
        "http",
        "hyper",
        "lambda",
        "rand",
        "reqwest",
        "rustls",
        "tokio",
        "tracing",
    ];
    let tree = compiled_alone("delivery");
    let names: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains("serde_json"), "the tree has been read: {tree}");
    for name in names {
        let family = name.split(['-', '_']).next().unwrap_or(name);
        assert!(!BANNED.contains(&family), "delivery depends on {name}");
    }
}

#[test]
fn there_is_one_version_of_http_and_one_of_tls() {
    let metadata = metadata();
    let roots = metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| package.name != "lastmile-tests");
    let roots: Vec<&PackageId> = roots.map(|package| &package.id).collect();
    let compiled = compiled_into(&metadata, roots);
    for name in ["hyper", "rustls", "http", "tokio", "reqwest"] {
        let versions: BTreeSet<String> = compiled
            .iter()
            .filter(|package| package.name == name)
            .map(|package| package.version.to_string())
            .collect();
        assert_eq!(versions.len(), 1, "{name}: {versions:?}");
    }
    for name in ["openssl", "native-tls", "openssl-sys"] {
        assert!(compiled.iter().all(|package| package.name != name), "{name} is a second TLS");
    }
}

#[test]
fn the_functions_are_built_without_the_local_aws_and_the_readers_of_files() {
    let metadata = metadata();
    for function in ["dispatch", "deadletter", "ingress", "notify"] {
        let compiled = compiled_into(&metadata, [&package(&metadata, function).id]);
        for name in [
            "local",
            "axum",
            "clap",
            "rustack-s3-core",
            "rustack-sqs-core",
            "cloudevents-sdk",
            "dialects",
            "serde-saphyr",
        ] {
            assert!(
                compiled.iter().all(|package| package.name != name),
                "{function} carries {name}"
            );
        }
    }
}
