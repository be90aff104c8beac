//! Reads of a stream that lose nothing to an interrupt: `Procwright::Native::Handover`.
//!
//! Ruby looks for interrupts (`Thread#raise`, `Timeout`, a handler of `trap`) wherever a method
//! written in Ruby returns. One that struck there, behind the read, would take along what was
//! read:
//!
//! 1. The read takes a line out of the stream, and returns it to a method of Ruby's.
//! 2. Another thread raises in this one.
//! 3. The method returns, and what was raised is thrown in its place.
//!
//! So the outermost method is one of these. It has the Ruby half note every piece that it takes,
//! looks for interrupts once more when all is done, and puts the pieces back if anything was
//! thrown. Ruby looks once more as this method returns: what is left is an interrupt between
//! those two looks, in which the lock is not given up unless this thread's time is over just then.
//!
//! Here, too, `$_` is set: it is of the Ruby method that calls, which one in Ruby cannot reach.
#![allow(unsafe_code)]

use magnus::rb_sys::{AsRawValue, FromRawValue};
use magnus::value::ReprValue;
use magnus::{
    Error, Module, Object, RArray, RModule, RObject, RString, Ruby, TryConvert, Value, method,
};

use crate::gvl::{check_interrupts, ruby};
use crate::reader::Reader;
use crate::string::to_vec;

pub(crate) fn define(native: &RModule) -> Result<(), Error> {
    let module = native.define_module("Handover")?;
    module.define_method("gets", method!(gets, -1))?;
    module.define_method("readline", method!(readline, -1))?;
    module.define_method("read", method!(read, -1))?;
    module.define_method("readpartial", method!(readpartial, -1))?;
    module.define_method("sysread", method!(readpartial, -1))?;
    module.define_method("read_nonblock", method!(read_nonblock, -1))?;
    module.define_method("getc", method!(getc, -1))?;
    module.define_method("readchar", method!(readchar, -1))?;
    module.define_method("getbyte", method!(getbyte, -1))?;
    module.define_method("readbyte", method!(readbyte, -1))?;
    module.define_private_method("each_taken", method!(each_taken, -1))?;
    module.define_method("print", method!(print, -1))
}

/// Calls the Ruby half with a list for what it takes, and `args`.
fn hand_over(this: RObject, half: &str, args: &[Value]) -> Result<Value, Error> {
    let ruby = ruby();
    let taken = ruby.ary_new();
    let lineno: Value = this.ivar_get("@lineno")?;
    let done = this.funcall(half, (taken, ruby.ary_new_from_values(args)));
    let done = done.and_then(|value: Value| {
        check_interrupts()?;
        Ok(value)
    });
    if let Err(error) = &done
        && !taken.is_empty()
        // Of bytes that cannot be decoded the next read is not to fail again.
        && !error.is_kind_of(ruby.exception_encoding_error())
    {
        put_back(this, taken)?;
        this.ivar_set("@lineno", lineno)?;
    }
    done
}

/// Makes these pieces, in their order, the next that are read.
fn put_back(this: RObject, taken: RArray) -> Result<(), Error> {
    let mut bytes = Vec::new();
    for piece in taken {
        bytes.extend(to_vec(RString::try_convert(piece)?));
    }
    let reader: &Reader = this.ivar_get("@native")?;
    reader.shared().put_back(&bytes);
    Ok(())
}

/// A line, which becomes `$_`.
fn hand_over_line(this: RObject, half: &str, args: &[Value]) -> Result<Value, Error> {
    let line = hand_over(this, half, args)?;
    // SAFETY: we have Ruby's lock, and are called by a method of Ruby's.
    unsafe { rb_sys::rb_lastline_set(line.as_raw()) };
    Ok(line)
}

fn gets(this: RObject, args: &[Value]) -> Result<Value, Error> {
    hand_over_line(this, "take_gets", args)
}

fn readline(this: RObject, args: &[Value]) -> Result<Value, Error> {
    hand_over_line(this, "take_readline", args)
}

fn read(this: RObject, args: &[Value]) -> Result<Value, Error> {
    hand_over(this, "take_read", args)
}

fn readpartial(this: RObject, args: &[Value]) -> Result<Value, Error> {
    hand_over(this, "take_readpartial", args)
}

fn read_nonblock(this: RObject, args: &[Value]) -> Result<Value, Error> {
    hand_over(this, "take_read_nonblock", args)
}

fn getc(this: RObject, args: &[Value]) -> Result<Value, Error> {
    hand_over(this, "take_getc", args)
}

fn readchar(this: RObject, args: &[Value]) -> Result<Value, Error> {
    hand_over(this, "take_readchar", args)
}

fn getbyte(this: RObject, args: &[Value]) -> Result<Value, Error> {
    hand_over(this, "take_getbyte", args)
}

fn readbyte(this: RObject, args: &[Value]) -> Result<Value, Error> {
    hand_over(this, "take_readbyte", args)
}

/// Yields what the Ruby half with this name gives, again and again, until that is nil.
fn each_taken(ruby: &Ruby, this: RObject, args: &[Value]) -> Result<(), Error> {
    let Some((half, args)) = args.split_first() else {
        return Ok(());
    };
    let half = String::try_convert(*half)?;
    loop {
        let one = hand_over(this, &half, args)?;
        if one.is_nil() {
            return Ok(());
        }
        let _: Value = ruby.yield_value(one)?;
    }
}

/// Without arguments it prints `$_`.
fn print(ruby: &Ruby, this: RObject, args: &[Value]) -> Result<Value, Error> {
    let args = match args {
        // SAFETY: as above.
        [] => ruby.ary_new_from_values(&[unsafe { Value::from_raw(rb_sys::rb_lastline_get()) }]),
        args => ruby.ary_new_from_values(args),
    };
    this.funcall("print_all", (args,))
}
