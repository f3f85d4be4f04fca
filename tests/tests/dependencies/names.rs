//! The names of functions and fields. `disallowed-names` in clippy.toml checks variables.

use syn::Ident;
use syn::visit::{self, Visit};

use super::modules::crates;

/// Words that do not describe a function or a field.
const NO_NAMES: [&str; 7] = ["of", "one", "it", "so", "what", "who", "told"];

/// The names in a file that are in [`NO_NAMES`].
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn check(&mut self, name: &Ident) {
        let name = name.to_string();
        if NO_NAMES.contains(&name.as_str()) {
            self.0.push(name);
        }
    }
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
            let mut names = Names::default();
            names.visit_file(&syn::parse_file(&text).expect("a file of source is Rust"));
            assert_eq!(names.0, [""; 0], "{file}");
        }
    }
}
