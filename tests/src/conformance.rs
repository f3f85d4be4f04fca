//! Conformance suites of other projects that the tests run, and each of our departures from them.
//!
//! A departure is named once, in [`DEPARTURES`], and `docs/reference/conformance.md` lists exactly
//! these. A suite counts its cases: each passes, or departs as the list states. A suite also fails
//! if a departure has no case, so the list has no outdated entries.

use std::collections::BTreeMap;

/// The head of the table of suites.
pub const SUITES_HEAD: &str = "| suite | cases | passed | departures |";
/// The head of the table of departures.
pub const DEPARTURES_HEAD: &str = "| suite | what is different here | why | source |";

/// The filters of Event Grid, as its simulator evaluates them.
pub const SIMULATOR: &str = "Azure Event Grid Simulator, filters";
/// The worked examples and samples of the documents that `lastmile` follows.
pub const TABLES: &str =
    "Knative and Event Grid documents: statuses, waits, lifetimes, dead letters";
/// The reaction to each status of a subscriber.
pub const RETRIES: &str = "Knative, statuses that are retried";
/// The waits with and without `Retry-After`.
pub const RETRY_AFTER: &str = "Knative, waits and `Retry-After`";
/// Brokers with triggers.
pub const BROKER: &str = "Knative rekt, delivery and routing of brokers";
/// Channels with subscriptions.
pub const CHANNEL: &str = "Knative rekt, delivery of channels";
/// Headers of requests, and contents of dead letters.
pub const HEADERS: &str = "Knative rekt, headers and dead letters";
/// The events and batches of the JSON format.
pub const FORMAT: &str = "CloudEvents, JSON format";
/// HTTP requests of publishers.
pub const BINDING: &str = "CloudEvents, HTTP binding, events that arrive";
/// Expressions of CloudEvents SQL.
pub const CESQL: &str = "CloudEvents SQL, conformance kit";
/// Signatures, verified by the reference libraries.
pub const WEBHOOKS: &str = "Standard Webhooks, PyPI and npm";
/// Departures for which no suite has a case.
pub const NO_SUITE: &str = "none";

const KNATIVE: &str = "knative/eventing 8cf4c4b";
const FORMAT_TESTS: &str = "cloudevents/conformance 3548b21";
const SIMULATOR_SOURCE: &str = "pm7y/AzureEventGridSimulator 05f2047";
const HTTP_BINDING: &str = "HTTP protocol binding 1.0.2";

/// An intended difference from a suite or a document.
#[derive(Debug)]
pub struct Departure {
    /// The name in the tests.
    pub name: &'static str,
    /// The suite that covers the departure.
    pub suite: &'static str,
    /// A description of the difference.
    pub difference: &'static str,
    /// The reason for the difference.
    pub why: &'static str,
    /// The document or code that describes the other behaviour.
    pub source: &'static str,
}

/// Every departure, by suite.
pub static DEPARTURES: [Departure; 28] = [
    Departure {
        name: "whole-properties",
        suite: TABLES,
        difference: "`deadletterProperties` has further fields after the five of the sample",
        why: "an operator needs the id, every attempt and the last response",
        source: "Event Grid namespaces, dead lettering",
    },
    Departure {
        name: "longer-retry-after",
        suite: RETRY_AFTER,
        difference: "without `retryAfterMax`, `Retry-After` of 429 and 503 is honoured, up to an hour",
        why: "Knative's text says so for the time after the feature's alpha; a subscriber that asks for a pause gets it",
        source: KNATIVE,
    },
    Departure {
        name: "error-data-is-text",
        suite: HEADERS,
        difference: "`knativeerrordata` is text, not base64",
        why: "Knative's documentation shows text; the native `errorData: base64` is for readers of the other form",
        source: KNATIVE,
    },
    Departure {
        name: "no-kn-namespace",
        suite: HEADERS,
        difference: "no header `Kn-Namespace`",
        why: "it names a namespace of a cluster, and there is none",
        source: KNATIVE,
    },
    Departure {
        name: "null-is-missing",
        suite: SIMULATOR,
        difference: "null counts as a missing key for every operator",
        why: "the page on filters makes no difference between null and undefined",
        source: SIMULATOR_SOURCE,
    },
    Departure {
        name: "other-types",
        suite: SIMULATOR,
        difference: "a value of another type is no value: `\"5\"` and `true` are no numbers, 5 is no text; so `…NotIn` matches it",
        why: "the page on filters says that such values are ignored",
        source: SIMULATOR_SOURCE,
    },
    Departure {
        name: "empty-value",
        suite: SIMULATOR,
        difference: "each text contains, begins with and ends with the empty text",
        why: "so does each text in every other dialect",
        source: SIMULATOR_SOURCE,
    },
    Departure {
        name: "folding",
        suite: SIMULATOR,
        difference: "case is that of Unicode's simple folding: `ς` is `σ`, and the Kelvin sign is `k`",
        why: "one comparison for all operators and scripts; .NET has several",
        source: SIMULATOR_SOURCE,
    },
    Departure {
        name: "time",
        suite: FORMAT,
        difference: "a `time` that is none is accepted",
        why: "a time is carried, not read",
        source: FORMAT_TESTS,
    },
    Departure {
        name: "content-type",
        suite: FORMAT,
        difference: "a `datacontenttype` that is none, or empty, is accepted",
        why: "a content type is carried, not read",
        source: FORMAT_TESTS,
    },
    Departure {
        name: "empty-attribute",
        suite: FORMAT,
        difference: "an empty `subject` or `dataschema` is accepted",
        why: "an empty optional attribute is carried",
        source: FORMAT_TESTS,
    },
    Departure {
        name: "attribute-name",
        suite: FORMAT,
        difference: "an attribute with capitals or punctuation in its name is accepted",
        why: "an odd attribute name is carried",
        source: FORMAT_TESTS,
    },
    Departure {
        name: "fraction",
        suite: FORMAT,
        difference: "an attribute that is a number with a fraction is accepted",
        why: "a fraction is carried",
        source: FORMAT_TESTS,
    },
    Departure {
        name: "batch-element",
        suite: FORMAT,
        difference: "of an invalid batch only the invalid elements are refused",
        why: "the others can be delivered; the HTTP ingress of `lastmile dev` refuses the whole request",
        source: FORMAT_TESTS,
    },
    Departure {
        name: "raw-utf-8",
        suite: BINDING,
        difference: "a `ce-*` header with raw UTF-8 is accepted",
        why: "clients send it, and it has one meaning",
        source: HTTP_BINDING,
    },
    Departure {
        name: "literal-quotes",
        suite: BINDING,
        difference: "a `ce-*` header with a space, or with quotes that are no quoted string, is accepted as it is",
        why: "clients send it, and it has one meaning",
        source: HTTP_BINDING,
    },
    Departure {
        name: "lone-percent",
        suite: BINDING,
        difference: "a `%` without two hexadecimal digits is refused",
        why: "it may be a percent sign or a mistake; the text asks for refusal only where bytes are no UTF-8",
        source: HTTP_BINDING,
    },
    Departure {
        name: "declared-twice",
        suite: BINDING,
        difference: "`ce-datacontenttype` beside `Content-Type` is accepted and does not count",
        why: "the header of the message says what the body is",
        source: HTTP_BINDING,
    },
    Departure {
        name: "header-name",
        suite: BINDING,
        difference: "a `ce-*` header whose name is not of letters and digits alone (`ce-my_ext`, `ce-a.b`) is accepted; only `ce-data` and `ce-data_base64` are refused",
        why: "an odd attribute name is carried as it came, as it is in a structured event",
        source: HTTP_BINDING,
    },
    Departure {
        name: "no-format",
        suite: BINDING,
        difference: "an event format other than JSON is refused, also with `ce-*` headers",
        why: "wrapping it would hide an event in the data of another; the text allows either",
        source: HTTP_BINDING,
    },
    Departure {
        name: "utf-8-bodies",
        suite: WEBHOOKS,
        difference: "a body that is no UTF-8 is signed, and the libraries cannot verify it",
        why: "they read the body as text; the signature is of its bytes, as the specification says",
        source: "standardwebhooks 1.1.0 (PyPI), 1.1.1 (npm)",
    },
    Departure {
        name: "kubernetes-arrays",
        suite: NO_SUITE,
        difference: "with `enableAdvancedFilteringOnArrays`, arrays are compared on Kubernetes too; `check` warns",
        why: "a file that asks for it gets it; without it an array matches nothing there",
        source: "Event Grid on Kubernetes, event filtering",
    },
    Departure {
        name: "kubernetes-operators",
        suite: NO_SUITE,
        difference: "the seven operators that Event Grid on Kubernetes lacks work there",
        why: "one engine serves all dialects",
        source: "Event Grid on Kubernetes, event filtering",
    },
    Departure {
        name: "null-data",
        suite: NO_SUITE,
        difference: "`data` that is null is no data: in binary mode the body is empty",
        why: "an attribute that is null is absent as well, and an event may have both members, one of them null",
        source: "CloudEvents, JSON format 1.0.2, 3.1",
    },
    Departure {
        name: "batch-reply",
        suite: NO_SUITE,
        difference: "a reply that is a batch becomes a dead letter, and does not count as a failed delivery",
        why: "a reply is one event; the answered event was accepted",
        source: "Knative, data plane of brokers",
    },
    Departure {
        name: "spaced-error-data",
        suite: NO_SUITE,
        difference: "`knativeerrordata` has a space for each control character within the answer",
        why: "Knative leaves them out, which could join a credential that was hidden only where it was whole",
        source: KNATIVE,
    },
    Departure {
        name: "malformed-reply",
        suite: NO_SUITE,
        difference: "a malformed reply becomes a dead letter, and does not count as a failed delivery",
        why: "repeating a request that succeeded would duplicate its effects",
        source: "Knative, data plane of brokers",
    },
    Departure {
        name: "default-container",
        suite: NO_SUITE,
        difference: "what has no dead-letter sink is stored in a default container",
        why: "Knative and Event Grid drop it; here nothing is dropped in silence",
        source: "Knative, event delivery; Event Grid, delivery and retry",
    },
];

/// Returns the departures as rows of a table.
#[must_use]
pub fn departure_rows() -> Vec<String> {
    let row = |departure: &Departure| {
        let suite = if departure.suite == NO_SUITE { "–" } else { departure.suite };
        format!("| {suite} | {} | {} | {} |", departure.difference, departure.why, departure.source)
    };
    DEPARTURES.iter().map(row).collect()
}

/// The counts of a suite's cases.
#[derive(Debug)]
pub struct Results {
    suite: &'static str,
    cases: usize,
    departed: BTreeMap<&'static str, usize>,
}

impl Results {
    /// Creates an empty result for this suite.
    #[must_use]
    pub fn new(suite: &'static str) -> Self {
        Self { suite, cases: 0, departed: BTreeMap::new() }
    }

    /// Counts a case that passes, or one that departs.
    ///
    /// # Panics
    /// If the suite has no departure of this name.
    #[track_caller]
    pub fn count(&mut self, departs: Option<&str>) {
        self.cases += 1;
        if let Some(name) = departs {
            let listed =
                |departure: &&Departure| departure.suite == self.suite && departure.name == name;
            let known = DEPARTURES.iter().find(listed);
            let known = known.unwrap_or_else(|| panic!("{}: {name} is not listed", self.suite));
            *self.departed.entry(known.name).or_default() += 1;
        }
    }

    /// Counts a case that must pass, or that must fail because it departs.
    ///
    /// # Panics
    /// If the case fails without a departure, or passes despite one.
    #[track_caller]
    pub fn check(&mut self, case: &str, passes: bool, departs: Option<&str>) {
        assert_eq!(passes, departs.is_none(), "{}: {case}: {departs:?}", self.suite);
        self.count(departs);
    }

    /// Returns the row of the table.
    ///
    /// # Panics
    /// If a departure of the suite has no case.
    #[must_use]
    pub fn row(&self) -> String {
        let listed = DEPARTURES.iter().filter(|departure| departure.suite == self.suite);
        for Departure { name, .. } in listed {
            assert!(self.departed.contains_key(name), "{}: no case of {name}", self.suite);
        }
        let departed: usize = self.departed.values().sum();
        format!("| {} | {} | {} | {departed} |", self.suite, self.cases, self.cases - departed)
    }
}
