//! An advanced filter as `docs/reference/conformance.md` writes it (`NumberIn [5]`), and the same read from an Event Grid resource.

use std::sync::Arc;

use delivery::event::Members;
use delivery::subscription::Subscription;
use dialects::{Source, read};
use serde_json::{Value, json};

/// The comparison of arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArrayMode {
    /// Without `enableAdvancedFilteringOnArrays`.
    Off,
    /// With `enableAdvancedFilteringOnArrays`.
    On,
    /// Without `enableAdvancedFilteringOnArrays`, on Kubernetes.
    Kubernetes,
}

impl ArrayMode {
    pub(super) const ALL: [Self; 3] = [Self::Off, Self::On, Self::Kubernetes];
}

/// An operator with its value or values.
#[derive(Clone, Debug)]
pub(super) struct AdvancedFilter {
    pub(super) operator: String,
    /// An array for `values`, anything else but null for `value`.
    pub(super) operand: Value,
}

impl AdvancedFilter {
    /// Reads `NumberIn [5]`, `BoolEquals true` or `IsNotNull`.
    pub(super) fn parse(text: &str) -> Self {
        let (operator, operand) = text.split_once(' ').unwrap_or((text, "null"));
        let operand = serde_json::from_str(operand).unwrap_or_else(|why| panic!("{text}: {why}"));
        Self { operator: operator.to_owned(), operand }
    }

    /// A subscription with this filter for a key.
    pub(super) fn subscription(&self, key: &str, arrays: ArrayMode) -> Arc<Subscription> {
        let mut filter = json!({"operatorType": self.operator, "key": key});
        match &self.operand {
            Value::Null => {}
            Value::Array(_) => filter["values"] = self.operand.clone(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                filter["value"] = self.operand.clone();
            }
        }
        let api_version = match arrays {
            ArrayMode::Off | ArrayMode::On => "2022-06-15",
            ArrayMode::Kubernetes => "2020-10-15-preview",
        };
        let endpoint = json!({"endpointUrl": "https://billing.example.com/"});
        let resource = json!({
            "id": "/subscriptions/s/resourceGroups/shop/providers/Microsoft.EventGrid/topics/orders/eventSubscriptions/billing",
            "apiVersion": api_version,
            "properties": {
                "destination": {"endpointType": "WebHook", "properties": endpoint},
                "filter": {
                    "enableAdvancedFilteringOnArrays": arrays == ArrayMode::On,
                    "advancedFilters": [filter],
                },
            },
        });
        let reading = read(&[Source { name: "billing.json", text: &resource.to_string() }]);
        let found = reading.catalogue.subscriptions().next();
        Arc::clone(found.unwrap_or_else(|| panic!("{resource:#}: {:#?}", reading.findings)))
    }
}

/// Asks the filter of a subscription about an event.
pub(super) fn matches(subscription: &Subscription, event: &str) -> bool {
    let members = Members::parse(event).unwrap_or_else(|why| panic!("{event}: {why}"));
    subscription.filter.takes(&members)
}
