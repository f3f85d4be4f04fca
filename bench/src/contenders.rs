//! The measured programs: the two functions, the smallest code that could replace them, and
//! handlers in Node and Python, as a team might write them.

use std::path::Path;

use anyhow::Context as _;

/// The task of a contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// Posts events to the subscriber.
    Deliver,
    /// Puts dead letters into a bucket.
    Store,
}

/// A measured program, and the command that starts it.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    /// The name in the tables.
    pub(crate) name: &'static str,
    pub(crate) job: Job,
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    /// Environment variables in addition to those of every function.
    pub(crate) variables: Vec<(String, String)>,
}

pub(crate) const DISPATCH: &str = "dispatch";
pub(crate) const DEADLETTER: &str = "deadletter";
/// The smallest Rust function that delivers events.
pub(crate) const FLOOR: &str = "floor";
/// [`FLOOR`] on several threads.
pub(crate) const FLOOR_THREADED: &str = "floor, many threads";
/// The smallest Rust function that stores dead letters.
pub(crate) const PUT_LOOP: &str = "put_object loop";
pub(crate) const NODE: &str = "Node";
pub(crate) const PYTHON: &str = "Python";

/// Returns all contenders. `binaries` is the folder of the Rust programs, and `tools` the folder of
/// the Python environment.
pub(crate) fn all(binaries: &Path, tools: &Path) -> Vec<Contender> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |path: std::path::PathBuf| path.display().to_string();
    let contender = |name, job, program| Contender {
        name,
        job,
        program,
        arguments: Vec::new(),
        variables: Vec::new(),
    };
    let binary = |name, job, program| contender(name, job, text(binaries.join(program)));
    let many = vec![("FLOOR_THREADS".to_owned(), "many".to_owned())];
    let python = vec!["-m".to_owned(), "awslambdaric".to_owned(), "handler.handler".to_owned()];
    vec![
        binary(DISPATCH, Job::Deliver, "dispatch"),
        binary(FLOOR, Job::Deliver, "bench-floor"),
        Contender { variables: many, ..binary(FLOOR_THREADED, Job::Deliver, "bench-floor") },
        Contender {
            arguments: vec![text(here.join("node/bootstrap.mjs"))],
            ..contender(NODE, Job::Deliver, "node".to_owned())
        },
        Contender {
            arguments: python,
            variables: vec![
                ("PYTHONPATH".to_owned(), text(here.join("python"))),
                ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()),
            ],
            ..contender(PYTHON, Job::Deliver, text(tools.join("python/venv/bin/python")))
        },
        binary(DEADLETTER, Job::Store, "deadletter"),
        binary(PUT_LOOP, Job::Store, "bench-put-loop"),
    ]
}

/// Returns the contender `dispatch` from this folder of binaries.
pub(crate) fn dispatch(binaries: &Path) -> anyhow::Result<Contender> {
    all(binaries, Path::new(""))
        .into_iter()
        .find(|contender| contender.name == DISPATCH)
        .context("dispatch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_knows_every_contender_by_its_name() {
        let script = include_str!("../run");
        let list = script.split_once("contenders=(").and_then(|(_, rest)| rest.split_once(')'));
        let names = all(Path::new(""), Path::new(""))
            .into_iter()
            .map(|contender| format!("\"{}\"", contender.name));
        let expected = names.collect::<Vec<_>>().join(" ");
        assert_eq!(list.map(|(names, _)| names), Some(expected.as_str()));
    }
}
