//! The modules of each crate. The top modules have no cycle of imports, so their dependencies also
//! point one way.
//!
//! The test reads the source: every `use` and every path that begins with `crate`, `super` or
//! `self`. Code that only tests compile does not count, because a test may use any module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemMod, ItemUse, UseTree};

/// Represents the items that the root file of a crate defines.
const ROOT: &str = "(root)";

/// The first import found between two top modules, by the modules.
type Edges = BTreeMap<(String, String), String>;

/// The imports of one file, which are added to the edges.
struct Imports<'a> {
    /// The path of the current module, from the root.
    module: Vec<String>,
    /// Top modules of the crate.
    tops: &'a BTreeSet<String>,
    /// The names that the root re-exports, with their top modules.
    exports: &'a BTreeMap<String, String>,
    file: String,
    edges: &'a mut Edges,
}

impl Imports<'_> {
    /// Records a path as an import of its top module.
    fn note(&mut self, path: &[String]) {
        let from = self.module.first().map_or(ROOT, String::as_str);
        let Some(target) = self.resolve(path) else { return };
        let to = match target.first() {
            Some(name) if self.tops.contains(name) => name.clone(),
            // A re-export at the root hides no cycle: the import counts for the module of the item.
            Some(name) => self.exports.get(name).cloned().unwrap_or_else(|| ROOT.to_owned()),
            None => return,
        };
        if from != to {
            let import = format!("{}: {}", self.file, path.join("::"));
            self.edges.entry((from.to_owned(), to)).or_insert(import);
        }
    }

    /// Resolves a path from the root of the crate; `None` if the path leads out of the crate.
    fn resolve(&self, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut absolute = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            "super" => self.module.split_last()?.1.to_vec(),
            name if self.module.is_empty() && self.tops.contains(name) => vec![name.to_owned()],
            _ => return None,
        };
        for segment in rest {
            if segment == "super" {
                absolute.pop()?;
            } else {
                absolute.push(segment.clone());
            }
        }
        Some(absolute)
    }
}

impl<'ast> Visit<'ast> for Imports<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        if module.content.is_some() {
            self.module.push(module.ident.to_string());
            visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for path in paths(&item.tree) {
            self.note(&path);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if matches!(segments[0].as_str(), "crate" | "super" | "self") && segments.len() > 1 {
            self.note(&segments);
        }
        visit::visit_path(self, path);
    }

    /// Macro arguments are unparsed tokens, so every `crate::module` in them counts.
    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        let text = invoked.tokens.to_string().replace(' ', "");
        for (at, _) in text.match_indices("crate::").filter(|(at, _)| !text[..*at].ends_with('$')) {
            let rest = &text[at + "crate::".len()..];
            let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next();
            self.note(&["crate".to_owned(), name.unwrap_or_default().to_owned()]);
        }
        visit::visit_macro(self, invoked);
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other kinds of items are not marked for tests")]
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        _ => &[],
    }
}

pub(super) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// Returns every path of a `use`, expanded, with the original names of the items.
fn paths(tree: &UseTree) -> Vec<Vec<String>> {
    bindings(tree).into_iter().map(|(path, _)| path).collect()
}

/// Returns every path of a `use`, and the name that it introduces.
pub(super) fn bindings(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    let leaf = |name: &syn::Ident| (vec![name.to_string()], name.to_string());
    match tree {
        UseTree::Path(path) => {
            let first = path.ident.to_string();
            let behind = |(rest, name): (Vec<String>, String)| {
                let name = if rest.is_empty() { first.clone() } else { name };
                ([vec![first.clone()], rest].concat(), name)
            };
            bindings(&path.tree).into_iter().map(behind).collect()
        }
        UseTree::Name(name) if name.ident == "self" => vec![(Vec::new(), String::new())],
        UseTree::Name(name) => vec![leaf(&name.ident)],
        UseTree::Rename(name) => vec![(vec![name.ident.to_string()], name.rename.to_string())],
        UseTree::Glob(_) => vec![(Vec::new(), String::new())],
        UseTree::Group(group) => group.items.iter().flat_map(bindings).collect(),
    }
}

/// The source of a crate: texts by their paths below `src`.
pub(super) type Source = BTreeMap<String, String>;

/// Returns the imports between the top modules of a crate. Failures show `name`.
fn edges_of(name: &str, source: &Source) -> Edges {
    let tops: BTreeSet<String> = source.keys().filter_map(|file| top(file)).collect();
    let mut edges = Edges::new();
    let root = if source.contains_key("lib.rs") { "lib.rs" } else { "main.rs" };
    let exports = exports_of(&source[root], &tops);
    for (file, text) in source {
        if is_test_file(file) || (file == "main.rs" && root == "lib.rs") {
            continue;
        }
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}/{file}: {error}"));
        let mut imports = Imports {
            module: module_of(file),
            tops: &tops,
            exports: &exports,
            file: format!("{name}/src/{file}"),
            edges: &mut edges,
        };
        imports.visit_file(&parsed);
    }
    edges
}

/// Returns the names that the root file imports from its modules and thereby re-exports.
fn exports_of(root: &str, tops: &BTreeSet<String>) -> BTreeMap<String, String> {
    let file = syn::parse_file(root).expect("the root file is Rust");
    let uses = file.items.iter().filter_map(|item| {
        if let Item::Use(item) = item { Some(bindings(&item.tree)) } else { None }
    });
    let of_a_module = |(path, name): (Vec<String>, String)| {
        let module = path.iter().find(|segment| !matches!(segment.as_str(), "crate" | "self"))?;
        tops.contains(module).then(|| (name, module.clone()))
    };
    uses.flatten().filter_map(of_a_module).collect()
}

fn top(file: &str) -> Option<String> {
    let first = file.split('/').next()?.trim_end_matches(".rs");
    (!matches!(first, "lib" | "main" | "bin")).then(|| first.to_owned())
}

pub(super) fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if matches!(path, "lib" | "main") {
        return Vec::new();
    }
    path.split('/').map(ToOwned::to_owned).collect()
}

pub(super) fn is_test_file(file: &str) -> bool {
    file.ends_with("/tests.rs") || file.contains("/tests/") || file.ends_with("/samples.rs")
}

/// Returns the imports of a cycle, if there is one.
fn circle(edges: &Edges) -> Option<Vec<String>> {
    let mut done = BTreeSet::new();
    let starts: BTreeSet<&String> = edges.keys().map(|(from, _)| from).collect();
    starts.into_iter().find_map(|start| walk(start, edges, &mut Vec::new(), &mut done))
}

fn walk(
    module: &String,
    edges: &Edges,
    way: &mut Vec<String>,
    done: &mut BTreeSet<String>,
) -> Option<Vec<String>> {
    if let Some(place) = way.iter().position(|before| before == module) {
        let mut round = way[place..].to_vec();
        round.push(module.clone());
        let import = |pair: &[String]| edges[&(pair[0].clone(), pair[1].clone())].clone();
        return Some(round.windows(2).map(import).collect());
    }
    if done.contains(module) {
        return None;
    }
    way.push(module.clone());
    let next = edges.keys().filter(|(from, _)| from == module).map(|(_, to)| to);
    let found = next.into_iter().find_map(|to| walk(to, edges, way, done));
    way.pop();
    done.insert(module.clone());
    found
}

/// Returns the sources of every crate of the workspace, by the crate's path.
pub(super) fn crates() -> Vec<(String, Source)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = |name: &str| {
        let entries = fs::read_dir(root.join(name)).expect("a folder of crates");
        entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>()
    };
    let mut folders = [folder("crates"), folder("functions"), folder("bench")].concat();
    folders.extend([root.join("bench"), root.join("tests")]);
    let mut found: Vec<(String, Source)> = Vec::new();
    for folder in folders.into_iter().filter(|folder| folder.join("Cargo.toml").exists()) {
        let mut source = Source::new();
        read(&folder.join("src"), "", &mut source);
        let name = folder.strip_prefix(&root).expect("below the root").display().to_string();
        found.push((name, source));
    }
    found
}

fn read(folder: &Path, prefix: &str, source: &mut Source) {
    for entry in fs::read_dir(folder).expect("a source folder") {
        let path: PathBuf = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            read(&path, &format!("{prefix}{name}/"), source);
        } else if name.ends_with(".rs") {
            source.insert(
                format!("{prefix}{name}"),
                fs::read_to_string(&path).expect("a file of source"),
            );
        }
    }
}

#[test]
fn top_modules_import_each_other_in_no_circle() {
    let crates = crates();
    assert!(crates.len() >= 10, "only {} crates were found", crates.len());
    for (name, source) in &crates {
        let edges = edges_of(name, source);
        if let Some(imports) = circle(&edges) {
            panic!("the modules of {name} import each other:\n  {}", imports.join("\n  "));
        }
    }
}

fn source(files: &[(&str, &str)]) -> Source {
    files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
}

#[test]
fn a_circle_is_found_with_both_imports_however_it_is_written() {
    let back = [
        "use crate::event::Event;",
        "use crate::{event::Event, time};",
        "use super::event::Event;",
        "fn f(e: &crate::event::Event) {}",
        // These imports use names that the root re-exports.
        "use crate::Event;",
        "use crate::Incident;",
        "mod inner { use super::super::event::Event; }",
        "fn f() { println!(\"{}\", crate::event::ID); }",
    ];
    for import in back {
        let files = [
            (
                "lib.rs",
                "mod event; mod names; mod time; pub use event::Event; pub use self::event::Event as Incident;",
            ),
            ("event/mod.rs", "mod part;"),
            ("event/part.rs", "use crate::names::Name;"),
            ("names.rs", import),
            ("time.rs", ""),
        ];
        let found = circle(&edges_of("x", &source(&files))).unwrap_or_else(|| panic!("{import}"));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().any(|edge| edge.starts_with("x/src/event/part.rs: crate::names")));
        assert!(found.iter().any(|edge| edge.starts_with("x/src/names.rs: ")), "{found:?}");
    }
}

#[test]
fn what_only_tests_import_makes_no_circle() {
    let files = [
        ("lib.rs", "mod event; mod names;"),
        ("event.rs", "use crate::names::Name;"),
        ("names.rs", "#[cfg(test)] mod tests { use crate::event::Event; }"),
    ];
    assert_eq!(circle(&edges_of("x", &source(&files))), None);
}
