//! A file to read.

/// One file: its name, for findings, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// What findings call it; usually the path.
    pub name: &'a str,
    /// YAML or JSON.
    pub text: &'a str,
}
