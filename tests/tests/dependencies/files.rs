//! The files of the crates with the rules: they import each other in no circle, so that each can be read after those that
//! it names.
//!
//! An import counts where the item lives, also if another module hands it on.
//!
//! No command of the command line imports another.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse};

use super::modules::{Source, attributes, bindings, crates, is_for_tests, is_test_file, module_of};

/// The crates whose files are checked.
const CHECKED: [&str; 2] = ["crates/dialects", "crates/delivery"];

/// The names that a file takes from elsewhere, and the paths that they stand for, from the root of the crate.
type Names = BTreeMap<String, Vec<String>>;

/// The imports of a file: the file that has the item, and the first path to it.
type Imports = BTreeMap<String, String>;

/// A file while its paths are collected.
struct File {
    module: Vec<String>,
    names: Names,
    paths: Vec<Vec<String>>,
}

impl File {
    fn new(file: &str, text: &str) -> Self {
        let mut read = Self { module: module_of(file), names: Names::new(), paths: Vec::new() };
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
        read.visit_file(&parsed);
        read
    }

    /// A path from the root of the crate; `None` for one that leads out of it.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let mut absolute = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.module.clone(),
            "super" => self.module.split_last()?.1.to_vec(),
            _ => [self.module.clone(), vec![first.clone()]].concat(),
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

impl<'ast> Visit<'ast> for File {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        assert!(module.content.is_none(), "a module within a file: {}", module.ident);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        for (path, name) in bindings(&item.tree) {
            if let Some(absolute) = self.absolute(&path) {
                self.names.insert(name, absolute.clone());
                self.paths.push(absolute);
            }
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1
            && let Some(absolute) = self.absolute(&segments)
        {
            self.paths.push(absolute);
        }
        visit::visit_path(self, path);
    }
}

/// The imports of every file.
fn imports(source: &Source) -> BTreeMap<String, Imports> {
    let files = source.iter().filter(|(file, _)| !is_test_file(file) && *file != "main.rs");
    let files: BTreeMap<&str, File> =
        files.map(|(file, text)| (file.as_str(), File::new(file, text))).collect();
    let of_file = |(file, read): (&&str, &File)| {
        let mut found = Imports::new();
        for path in &read.paths {
            let target = home(&files, path, 8).filter(|target| target != file);
            target.map(|target| found.entry(target).or_insert_with(|| path.join("::")));
        }
        ((*file).to_owned(), found)
    };
    files.iter().map(of_file).collect()
}

/// The file that has what a path leads to, through names that files hand on.
fn home(files: &BTreeMap<&str, File>, path: &[String], steps: usize) -> Option<String> {
    let (file, rest) = (0..=path.len()).rev().find_map(|length| {
        let (module, rest) = path.split_at(length);
        let names = match module.join("/") {
            name if name.is_empty() => ["lib.rs".to_owned(), String::new()],
            name => [format!("{name}.rs"), format!("{name}/mod.rs")],
        };
        let file = names.into_iter().find(|name| files.contains_key(name.as_str()))?;
        Some((file, rest))
    })?;
    let handed_on = rest.first().and_then(|name| files[file.as_str()].names.get(name));
    match handed_on {
        Some(other) if steps > 0 => {
            let other = [other.as_slice(), &rest[1..]].concat();
            home(files, &other, steps - 1).or(Some(file))
        }
        Some(_) | None => Some(file),
    }
}

/// The files that reach each other, each circle with one line for each import in it.
fn circles(imports: &BTreeMap<String, Imports>) -> Vec<Vec<String>> {
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&String> = imports[from].keys().collect();
        while let Some(file) = next.pop() {
            if seen.insert(file) {
                next.extend(imports[file].keys());
            }
        }
        seen
    };
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|file| (file, reached(file))).collect();
    let mut found: BTreeMap<BTreeSet<&String>, Vec<String>> = BTreeMap::new();
    for (file, reaches) in reached.iter().filter(|(file, reaches)| reaches.contains(*file)) {
        let circle: BTreeSet<&String> =
            reaches.iter().copied().filter(|other| reached[other].contains(file)).collect();
        let lines = imports[*file].iter().filter(|(to, _)| circle.contains(to));
        let lines = lines.map(|(to, path)| format!("{file} → {to}: {path}")).collect::<Vec<_>>();
        found.entry(circle).or_default().extend(lines);
    }
    found.into_values().collect()
}

#[test]
fn files_of_the_rules_import_each_other_in_no_circle() {
    let crates = crates();
    for name in CHECKED {
        let (_, source) = crates.iter().find(|(folder, _)| folder == name).expect(name);
        let found = circles(&imports(source));
        let shown: Vec<String> = found.iter().map(|circle| circle.join("\n  ")).collect();
        assert!(found.is_empty(), "{name} has circles of files:\n  {}", shown.join("\n\n  "));
    }
}

/// The command of a file of the command line: `commands/destinations/list.rs` belongs to `destinations`.
fn command(file: &str) -> Option<&str> {
    file.strip_prefix("commands/")?.split(['/', '.']).next()
}

#[test]
fn no_command_imports_another() {
    let crates = crates();
    let (_, source) =
        crates.iter().find(|(folder, _)| folder == "crates/cli").expect("the command line");
    // A command has a function `run`. Beside the commands is what several of them share.
    let runs = source.iter().filter(|(_, text)| text.contains("fn run("));
    let commands: BTreeSet<&str> = runs.filter_map(|(file, _)| command(file)).collect();
    assert!(commands.len() > 10, "only {commands:?} were found");
    for (file, imported) in imports(source) {
        for (to, path) in imported {
            let (Some(from), Some(to)) = (command(&file), command(&to)) else { continue };
            assert!(from == to || !commands.contains(to), "{file} imports a command: {path}");
        }
    }
}

#[test]
fn a_circle_of_files_is_found_through_a_name_that_another_module_hands_on() {
    let source = |back: &str| -> Source {
        [
            ("lib.rs", "mod event; mod names; pub use event::part::Part;"),
            ("event/mod.rs", "mod part; pub use part::Part;"),
            ("event/part.rs", "use crate::names::Name; pub struct Part;"),
            ("names.rs", back),
        ]
        .into_iter()
        .map(|(file, text)| (file.to_owned(), text.to_owned()))
        .collect()
    };
    for back in [
        "use crate::event::part::Part;",
        "use crate::event::Part;",
        "use crate::Part;",
        "fn f(_: super::event::Part) {}",
    ] {
        let found = circles(&imports(&source(back)));
        assert_eq!(found.len(), 1, "{back}");
        assert_eq!(found[0].len(), 2, "{back}: {found:?}");
    }
    assert!(circles(&imports(&source("#[cfg(test)] mod tests { use crate::Part; }"))).is_empty());
}
