//! Every relative link of the documentation leads to an existing file and heading.

use std::path::{Component, Path, PathBuf};

use crate::pages::{self, Page};

/// Pages outside the manual whose links are also checked.
const OTHERS: [&str; 10] = [
    "AGENTS.md",
    "ARCHITECTURE.md",
    "BENCH.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "bench/README.md",
    "docs/README.md",
    "examples/receivers/README.md",
    "llms.txt",
];

/// Returns the path below the root that a link of this page refers to, and its anchor.
fn resolve(page: &str, target: &str) -> (PathBuf, Option<String>) {
    let (path, anchor) = target
        .split_once('#')
        .map_or((target, None), |(path, anchor)| (path, Some(anchor.to_owned())));
    if path.is_empty() {
        return (PathBuf::from(page), anchor);
    }
    let mut resolved = Path::new(page).parent().unwrap_or(Path::new("")).to_path_buf();
    for part in Path::new(path).components() {
        if part == Component::ParentDir {
            resolved.pop();
        } else {
            resolved.push(part);
        }
    }
    (resolved, anchor)
}

/// Returns the broken links of a page.
fn broken(page: &Page) -> Vec<String> {
    let relative = page
        .links
        .iter()
        .filter(|link| !link.target.contains("://") && !link.target.starts_with("mailto:"));
    let wrong = relative.filter(|link| {
        let (path, anchor) = resolve(&page.name, &link.target);
        let file = pages::root().join(&path);
        let Some(anchor) = anchor else { return !file.exists() };
        if path == Path::new(&page.name) {
            return !page.anchors.contains(&anchor);
        }
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        !(file.exists()
            && (!is_page || Page::read(&path.to_string_lossy()).anchors.contains(&anchor)))
    });
    wrong.map(|link| format!("{}:{}: {}", page.name, link.line, link.target)).collect()
}

#[test]
fn every_relative_link_leads_to_a_file_and_a_heading() {
    let mut all = pages::manual();
    all.extend(OTHERS.iter().map(|name| Page::read(name)));
    let count: usize = all.iter().map(|page| page.links.len()).sum();
    assert!(count > 200, "only {count} links were found");
    let wrong: Vec<String> = all.iter().flat_map(broken).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_of_the_manual_is_in_its_index() {
    let index = Page::read("docs/README.md");
    let listed: Vec<PathBuf> =
        index.links.iter().map(|link| resolve(&index.name, &link.target).0).collect();
    let missing: Vec<String> = pages::manual()
        .into_iter()
        .map(|page| page.name)
        .filter(|name| name != "docs/README.md" && name != "README.md")
        .filter(|name| !listed.contains(&PathBuf::from(name)))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn links_to_nothing_are_found() {
    let text = "# A\n[a](#a) [b](#b) [c](nothing.md) [d](../README.md#nothing) [e](https://example.com/)\n";
    let wrong = broken(&Page::parse("docs/page.md", text));
    assert_eq!(
        wrong,
        [
            "docs/page.md:2: #b",
            "docs/page.md:2: nothing.md",
            "docs/page.md:2: ../README.md#nothing"
        ]
    );
}
