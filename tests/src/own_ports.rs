//! Lets one fake be all ports of dispatch.

/// Implements the sets of ports for a type that implements every port: each accessor returns `self`.
#[macro_export]
macro_rules! its_own_ports {
    ($ports:ty) => {
        impl delivery::ports::RequestPorts for $ports {
            type Http = Self;
            type Secrets = Self;
            type Identity = Self;

            fn http(&self) -> &Self {
                self
            }

            fn secrets(&self) -> &Self {
                self
            }

            fn identity(&self) -> &Self {
                self
            }
        }

        impl delivery::ports::StoragePorts for $ports {
            type Queues = Self;
            type Blobs = Self;
            type Sinks = Self;

            fn queues(&self) -> &Self {
                self
            }

            fn blobs(&self) -> &Self {
                self
            }

            fn sinks(&self) -> &Self {
                self
            }
        }

        impl delivery::ports::DispatchPorts for $ports {
            type Subscriptions = Self;
            type Consents = Self;
            type Table = Self;

            fn subscriptions(&self) -> &Self {
                self
            }

            fn consents(&self) -> &Self {
                self
            }

            fn table(&self) -> &Self {
                self
            }
        }
    };
}
