//! The queues of this user, and the state of each.

use magnus::{Error, IntoValue, Object, RArray, RHash, RModule, Ruby, Value, function};
use procwright::queue::{self, LaneStat};

use super::blocking::briefly;
use super::errors::Side;
use crate::errors::guarded;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    native.define_singleton_method("queue_stat", function!(stat, 1))?;
    native.define_singleton_method("queue_names", function!(names, 0))
}

fn names() -> Result<Vec<String>, Error> {
    guarded(|| briefly(Side::Receiver, queue::names))
}

/// The state of a queue, under the names of the structs in `lib/procwright/queue.rb`.
fn stat(ruby: &Ruby, name: String) -> Result<RHash, Error> {
    guarded(|| {
        let stat = briefly(Side::Receiver, || queue::stat(&name))?;
        let hash = ruby.hash_new();
        let put = |name: &str, value: Value| hash.aset(ruby.to_symbol(name), value);
        put("lanes", stat.lanes.into_value_with(ruby))?;
        put("first", stat.first.into_value_with(ruby))?;
        put("limit", stat.limit.into_value_with(ruby))?;
        put("memory", stat.memory.into_value_with(ruby))?;
        put("epoch", stat.epoch.into_value_with(ruby))?;
        let receiver = ruby.hash_new();
        let state = ruby.to_symbol(stat.receiver.state.name());
        receiver.aset(ruby.to_symbol("state"), state)?;
        receiver.aset(ruby.to_symbol("pid"), stat.receiver.pid)?;
        let asleep = stat.receiver.asleep.map(|how| ruby.to_symbol(how.name()));
        receiver.aset(ruby.to_symbol("asleep"), asleep)?;
        put("receiver", receiver.into_value_with(ruby))?;
        let taken = ruby.ary_new();
        for one in &stat.taken {
            taken.push(lane(ruby, one)?)?;
        }
        put("taken", taken.into_value_with(ruby))?;
        Ok(hash)
    })
}

fn lane(ruby: &Ruby, lane: &LaneStat) -> Result<RArray, Error> {
    let parts: [Value; 7] = [
        lane.number.into_value_with(ruby),
        ruby.to_symbol(lane.state.name()).into_value_with(ruby),
        lane.pid.into_value_with(ruby),
        lane.guest.into_value_with(ruby),
        lane.waiting.into_value_with(ruby),
        lane.block.into_value_with(ruby),
        lane.is_blocked.into_value_with(ruby),
    ];
    Ok(ruby.ary_new_from_values(&parts))
}
