//! The names of functions and fields. `disallowed-names` in clippy.toml checks variables.

use syn::Ident;
use syn::visit::{self, Visit};

use super::modules::crates;

/// The disallowed names that a file contains.
struct Names {
    disallowed: Vec<&'static str>,
    found: Vec<String>,
}

impl Names {
    fn check(&mut self, name: &Ident) {
        let name = name.to_string();
        if self.disallowed.contains(&name.as_str()) {
            self.found.push(name);
        }
    }
}

/// Returns the names that clippy disallows for variables.
fn disallowed() -> Vec<&'static str> {
    const SETTINGS: &str = include_str!("../../../clippy.toml");
    let list = SETTINGS.lines().find_map(|line| line.strip_prefix("disallowed-names = "));
    list.expect("a list of names").split('"').skip(1).step_by(2).collect()
}

impl<'ast> Visit<'ast> for Names {
    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.check(&signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        field.ident.iter().for_each(|name| self.check(name));
        visit::visit_field(self, field);
    }
}

#[test]
fn a_name_is_a_noun_or_a_verb() {
    for (_, files) in crates() {
        for (file, text) in files {
            let mut names = Names { disallowed: disallowed(), found: Vec::new() };
            names.visit_file(&syn::parse_file(&text).expect("a file of source is Rust"));
            assert_eq!(names.found, [""; 0], "{file}");
        }
    }
}

#[test]
fn a_function_and_a_field_without_a_name_are_found() {
    let mut names = Names { disallowed: disallowed(), found: Vec::new() };
    let source = "struct Step { it: u8, at: u8 } impl Step { fn of() -> u8 { 1 } }";
    names.visit_file(&syn::parse_file(source).expect("source"));
    assert_eq!(names.found, ["it", "of"]);
}
