//! Identifies one run of `lastmile dev`. Pure.
//!
//! Events and steps are numbered from 1 at each start, but a browser tab may still show the
//! page of an earlier run. Every id on a page therefore includes its run: `RUN-NUMBER`.

/// A run of `lastmile dev`, identified by a random text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::console) struct Run(String);

/// The result of parsing the id of an event from a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    ThisRun(u64),
    AnotherRun,
    /// The text is not of the form `RUN-NUMBER`.
    Invalid,
}

impl Run {
    pub(super) fn new(random: u32) -> Self {
        Self(format!("{random:08x}"))
    }

    pub(in crate::console) fn as_str(&self) -> &str {
        &self.0
    }

    /// Formats the id with this number: `RUN-NUMBER`.
    pub(in crate::console) fn id(&self, number: u64) -> String {
        format!("{}-{number}", self.0)
    }

    pub(super) fn read(&self, id: &str) -> Id {
        let parts = id.split_once('-');
        match parts.and_then(|(run, number)| Some((run, number.parse().ok()?))) {
            Some((run, number)) if run == self.0 => Id::ThisRun(number),
            Some(_) => Id::AnotherRun,
            None => Id::Invalid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_a_number_of_one_run() {
        let (run, other) = (Run::new(7), Run::new(8));
        assert_eq!(run.id(12), "00000007-12");
        assert_eq!(
            (run.read(&run.id(12)), other.read(&run.id(12))),
            (Id::ThisRun(12), Id::AnotherRun)
        );
        for id in ["", "12", "abc", "00000007-", "00000007-x", "00000007--1"] {
            assert_eq!(run.read(id), Id::Invalid, "{id}");
        }
    }
}
