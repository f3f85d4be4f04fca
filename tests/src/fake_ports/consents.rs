//! Fake storage of consents.

use std::collections::HashMap;

use delivery::machine::consent::{ConsentKey, Granted};
use delivery::ports::{ConsentError, Consents};

use super::{FakePorts, Hanging};

#[derive(Default)]
pub(super) struct StoredConsents {
    granted: HashMap<ConsentKey, Granted>,
    are_unreadable: bool,
}

impl FakePorts {
    /// From now on stored consents cannot be read, or can be read again.
    pub fn set_consents_unreadable(&self, are_unreadable: bool) {
        self.state().consents.are_unreadable = are_unreadable;
    }

    /// The stored consents.
    #[must_use]
    pub fn consents(&self) -> Vec<Granted> {
        self.state().consents.granted.values().cloned().collect()
    }
}

impl Consents for FakePorts {
    async fn consent(&self, key: &ConsentKey) -> Result<Option<Granted>, ConsentError> {
        let state = self.state();
        if state.consents.are_unreadable {
            let problem = "injected by the test".to_owned();
            return Err(ConsentError { key: key.to_string(), problem });
        }
        Ok(state.consents.granted.get(key).cloned())
    }

    async fn keep_consent(&self, key: &ConsentKey, granted: &Granted) -> Result<(), ConsentError> {
        self.hang(Hanging::KeepConsent).await;
        self.state().consents.granted.insert(key.clone(), granted.clone());
        Ok(())
    }
}
