//! Who is measured: the two functions, the least that could stand in their place, and what a team
//! would write instead.

use std::path::Path;

/// What a contender does with records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Job {
    /// It posts events to the subscriber.
    Deliver,
    /// It puts dead letters into a bucket.
    Store,
}

/// A function that can be started.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    /// Its name in the tables.
    pub(crate) name: &'static str,
    /// What it does.
    pub(crate) job: Job,
    /// Its program, and what that is given.
    pub(crate) program: String,
    /// See there.
    pub(crate) arguments: Vec<String>,
    /// What it finds in its environment besides what all find there.
    pub(crate) variables: Vec<(String, String)>,
}

/// Names that goals are computed from.
pub(crate) const DISPATCH: &str = "dispatch";
/// See there.
pub(crate) const DEADLETTER: &str = "deadletter";
/// See there.
pub(crate) const FLOOR: &str = "floor";
/// See there.
pub(crate) const PUT_LOOP: &str = "put_object loop";
/// See there.
pub(crate) const NODE: &str = "Node";
/// See there.
pub(crate) const PYTHON: &str = "Python";

/// All of them; binaries lie in one folder, the other languages' tools in another.
pub(crate) fn all(binaries: &Path, tools: &Path) -> Vec<Contender> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |path: std::path::PathBuf| path.display().to_string();
    let binary = |name, job, program| Contender {
        name,
        job,
        program: text(binaries.join(program)),
        arguments: Vec::new(),
        variables: Vec::new(),
    };
    let many = vec![("FLOOR_THREADS".to_owned(), "many".to_owned())];
    let python = vec!["-m".to_owned(), "awslambdaric".to_owned(), "handler.handler".to_owned()];
    vec![
        binary(DISPATCH, Job::Deliver, "dispatch"),
        binary(FLOOR, Job::Deliver, "bench-floor"),
        Contender { variables: many, ..binary("floor, many threads", Job::Deliver, "bench-floor") },
        Contender {
            name: NODE,
            job: Job::Deliver,
            program: "node".to_owned(),
            arguments: vec![text(here.join("node/bootstrap.mjs"))],
            variables: Vec::new(),
        },
        Contender {
            name: PYTHON,
            job: Job::Deliver,
            program: text(tools.join("python/venv/bin/python")),
            arguments: python,
            variables: vec![
                ("PYTHONPATH".to_owned(), text(here.join("python"))),
                ("PYTHONDONTWRITEBYTECODE".to_owned(), "1".to_owned()),
            ],
        },
        binary(DEADLETTER, Job::Store, "deadletter"),
        binary(PUT_LOOP, Job::Store, "bench-put-loop"),
    ]
}
