//! Defines the parts of the help that several commands share: the headings of options, and the end
//! of the help. The end contains examples and names a page of the manual.
//!
//! Separate because each command declares its own help, and all must have the same form.

/// The heading of options that name subscription files.
pub(crate) const FILES: &str = "Files";
/// The heading of options that select a deployment, or one of its resources.
pub(crate) const LOCATION: &str = "Location";
/// The heading of options that filter dead letters.
pub(crate) const FILTERS: &str = "Filters";
/// The heading of options of a replay job.
pub(crate) const JOB: &str = "Job";
/// The heading of options that select and format the output.
pub(crate) const OUTPUT: &str = "Output";
/// The heading of options that confirm or prevent changes.
pub(crate) const CONFIRMATION: &str = "Confirmation";

/// Formats the end of a command's help: its examples, and the page of the manual with details.
///
/// The first argument is the path of the page in the repository. Each further argument is a
/// complete command line. A `\` at the end of a line continues the command on the next line.
macro_rules! examples {
    ($page:literal, $($line:literal),+ $(,)?) => {
        concat!("Examples:\n", $("  ", $line, "\n",)+ "\nMore: ", $page)
    };
}
pub(crate) use examples;
