//! The module of the command line, with an error in place of its pages.

#[path = "../../../../crates/cli/src/console/shell/query.rs"]
pub(super) mod query;

/// Stands in for the page of an error.
pub(super) mod error {
    use axum::http::StatusCode;

    pub(in crate::console) struct PageError;

    impl PageError {
        pub(in crate::console) fn new(status: StatusCode, title: String, why: String) -> Self {
            assert!(status.is_client_error() && !title.is_empty() && !why.is_empty());
            Self
        }
    }
}
