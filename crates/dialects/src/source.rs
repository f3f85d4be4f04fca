//! The input of [`super::read`] and [`super::parse`].

/// One file to read: its name for findings, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// Name of the file in findings, usually its path.
    pub name: &'a str,
    /// Text of the file, in YAML or JSON.
    pub text: &'a str,
}
