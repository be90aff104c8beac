//! How a process ended, as JSON. `docs/reference/wait.schema.json` says it exactly.

use serde_json::{Value, json};

use super::exit::Exit;

impl Exit {
    /// The end as it stands in reports: `kind`, and the fields that go with it.
    ///
    /// ```
    /// use procwright_process::Exit;
    ///
    /// let json = Exit::Code(3).to_json();
    /// assert_eq!((&json["kind"], &json["code"]), (&"exited".into(), &3.into()));
    /// ```
    pub fn to_json(self) -> Value {
        match self {
            Exit::Code(code) => json!({"kind": "exited", "code": code}),
            Exit::Signal { signal, core } => json!({
                "kind": "signaled",
                "signal": signal.number(),
                "name": signal.name(),
                "core": core,
            }),
            Exit::Unknown(why) => json!({"kind": "unknown", "why": why.name()}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unknown;

    #[test]
    fn the_ways_to_end() {
        assert_eq!(
            Exit::Code(3).to_json(),
            json!({"kind": "exited", "code": 3})
        );
        assert_eq!(
            Exit::Unknown(Unknown::ReapedElsewhere).to_json(),
            json!({"kind": "unknown", "why": "reaped_elsewhere"})
        );
        assert_eq!(
            Exit::Unknown(Unknown::StillRunning).to_json(),
            json!({"kind": "unknown", "why": "still_running"})
        );
    }
}
