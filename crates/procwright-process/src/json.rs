//! How a process ended, as JSON. `docs/reference/wait.schema.json` says it exactly.

use serde_json::{Value, json};

use super::exit::{Exit, Unknown};
use super::signal::Signal;

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

    /// The end of which [`Exit::to_json`] tells; none if that is not what the value is.
    ///
    /// ```
    /// use procwright_process::Exit;
    ///
    /// assert_eq!(Exit::from_json(&Exit::Code(3).to_json()), Some(Exit::Code(3)));
    /// ```
    pub fn from_json(value: &Value) -> Option<Exit> {
        let number = |name: &str| i32::try_from(value[name].as_i64()?).ok();
        match value["kind"].as_str()? {
            "exited" => Some(Exit::Code(number("code")?)),
            "signaled" => Some(Exit::Signal {
                signal: Signal::reported(number("signal")?),
                core: value["core"].as_bool()?,
            }),
            "unknown" => {
                let name = value["why"].as_str()?;
                let why = Unknown::ALL.into_iter().find(|why| why.name() == name);
                why.map(Exit::Unknown)
            }
            _ => None,
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

    #[test]
    fn an_end_is_read_as_it_was_written() {
        let signal = |number, core| Exit::Signal {
            signal: Signal::reported(number),
            core,
        };
        let known = [
            Exit::Code(0),
            Exit::Code(255),
            signal(9, false),
            signal(11, true),
            signal(40, false),
        ];
        let unknown = Unknown::ALL.map(Exit::Unknown);
        for exit in known.into_iter().chain(unknown) {
            assert_eq!(Exit::from_json(&exit.to_json()), Some(exit));
        }
    }

    #[test]
    fn what_is_no_end_is_none() {
        for value in [
            Value::Null,
            json!(3),
            json!({}),
            json!({"kind": "exited"}),
            json!({"kind": "exited", "code": "3"}),
            json!({"kind": "exited", "code": 1_u64 << 40}),
            json!({"kind": "signaled", "name": "SIGKILL", "core": false}),
            json!({"kind": "signaled", "signal": 9}),
            json!({"kind": "unknown", "why": "otherwise"}),
            json!({"kind": "stopped", "code": 0}),
        ] {
            assert_eq!(Exit::from_json(&value), None, "{value}");
        }
    }
}
