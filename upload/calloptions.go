package upload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"time"
	"unicode/utf8"

	"gcsup/session"
)

// CallOptions are options of single calls, see [Uploader.With]. A zero field keeps
// the option of the Uploader.
type CallOptions struct {
	// Observer, RetryFor, Window, Spool and DetectContentType are those of [Options].
	Observer          func(Event)
	RetryFor          time.Duration
	Window            int
	Spool             *Spool
	DetectContentType func(head []byte) string

	// Retries, if not 0, is how many retries in a row may be made without newly committed
	// bytes. It replaces RetryFor, and the number that grows with the size. A negative
	// number allows no retry.
	//
	// Each failure that is followed by a wait counts, whether the retry is the same request
	// or a status query: the upload ends with [session.ErrRetriesExhausted] after Retries+1
	// such failures. Only newly committed bytes set the count to 0: an answered query or a
	// new session does not. A retry without a wait does not count: with new credentials after a
	// 401, or on a new connection after an idle one broke. The parts of a file count
	// separately, and so do the files of a batch. While the circuit breaker blocks
	// an upload, see [backoff.Breaker], it makes no retry.
	Retries int

	// Permanent, if not nil, is called with each failure before the wait for its retry. If
	// it returns true, there is no retry, and the error of the call wraps [backoff.ErrPermanent]. A
	// saved upload stays resumable. The error has the status, reason and message, the
	// committed offset, and the attempts and waits since the last newly committed byte; its
	// Kind may be nil. Permanent must be safe for concurrent use if files are sent in parts
	// or in a batch. It cannot make other failures retryable.
	Permanent func(*session.Error) bool

	// Skip, if not SkipNothing, makes a call of File, ReaderAt, Bytes or FS upload nothing if
	// the rule applies to the existing object. Result.Skipped is then the rule, the error is
	// nil, and Result.Object is the existing object, if it was read. As in a batch, the rule
	// is applied before anything is sent. If the upload is saved, the rule is applied again
	// when its lease is held, because another process may have made the object meanwhile. With
	// SkipSameTime the object gets the modification time of the source; a source that has none
	// is compared as with SkipIdentical.
	//
	// A stream cannot be compared: Reader accepts only SkipExisting, and a Writer no rule.
	// Resume compares nothing.
	Skip Skip

	// Header is added to every request except those of [Options.Store], for example
	// X-Goog-Request-Reason or X-Goog-Custom-Audit-*. Headers of the protocol are refused.
	Header http.Header

	// Size, if not nil, is how many bytes the source must have. If it has fewer,
	// the error wraps [ErrTruncated], and if it has more, [session.ErrInvalid].
	// In both cases no object is published.
	Size *int64

	// SourceVersion identifies the content of a file, for example by its revision or hash
	// in another system. It is saved with the upload. If the caller gives a version when
	// the upload is resumed, it is compared instead of the times and the inode of the
	// file, so that a copy on another machine need not be read from its start. A resume
	// then compares only the size and the bytes between the last two saved checksums,
	// usually 64 MiB. The same version must always mean the same bytes. If the version
	// differs, the error is [session.ErrSourceChanged].
	SourceVersion string

	// SourceName, if not "", replaces the path of the file of File, or of each file of Files, in the ID of the
	// upload. Use it if machines that share a store have the file at different paths: with the same name,
	// destination and endpoint, they continue the same upload, and only one works on it at a time.
	// [Uploader.ID], Import and TakeOver use the name, too. For a stream in a spool, the name is
	// [SavedUpload].Identity, so that a program can find an interrupted upload of the same stream. It does not resume
	// that upload.
	SourceName string

	// Accept, if not nil, is called with each file that File, Files or Resume opens, before
	// anything of it is sent or compared. If it returns an error, the file is not uploaded, and
	// the error of its upload wraps it. A change of the file after Accept is an error as
	// always, [session.ErrSourceChanged]. In a batch, Accept must be safe for concurrent use.
	Accept func(path string, info fs.FileInfo) error

	// RemoveSource removes the file that File, Files or Resume has uploaded, when its object
	// exists: [Result].SourceRemoved. The object must have the size and the CRC32C of the bytes
	// that were read, and the file must be unchanged. Immediately before the removal, the size, the
	// times and the inode of the file are compared with what was read, and its bytes if that is not
	// conclusive. Then the metadata of the object is read. A file that Skip leaves out is removed
	// only if its bytes were compared: SkipSameTime then compares like SkipIdentical, and
	// SkipExisting removes nothing. A dry run removes nothing.
	//
	// If the file cannot be removed, the upload has succeeded nevertheless, and [Result].SourceKept
	// has the reason. If Resume finds that only the cleanup of an upload is left, it does not
	// compare the source, and keeps it. A file that is a symbolic link is refused before anything
	// is sent ([chunk.ErrNotRegular]), see also Below and [Job].Below. Directories stay. Do not use
	// RemoveSource for a file to which a program still writes: on a local file system of Linux, a
	// file that is open for writing is kept, and elsewhere what is written after the comparison is
	// lost. Sources without a path are not removed.
	//
	// The file has another name while it is removed: a dot, its name, and .gcsup-removing. If the process is
	// killed at that moment, the file keeps that name.
	RemoveSource bool

	// Dispose, if not nil, is called with the file when RemoveSource
	// would remove it, and replaces the removal. Everything that
	// RemoveSource compares is compared first, whether RemoveSource is set or not.
	// [Result.SourceRemoved] is true if Dispose returns nil. Otherwise [Result].SourceKept is its
	// error.
	//
	// path is absolute. dir is its directory, which is closed when Dispose has returned. info is
	// the metadata of the open file. If Dispose moves the file, it must then call unchanged, which
	// returns an error that wraps [chunk.ErrChanged] if the file has changed, or [syscall.ETXTBSY]
	// if a process has it open for writing. After an error, Dispose must move the file back. On a
	// local file system of Linux, a process that opens the file for writing waits until Dispose
	// has returned.
	Dispose func(dir *os.Root, path string, info fs.FileInfo, unchanged func() error) error

	// Below, if not "", is a directory that other users may write to. File and Resume open only a file
	// below it, and follow no symbolic link below it.
	Below string

	// Unsaved makes a call ignore [Options].Store, and send each file over one connection. A process
	// that ends meanwhile leaves nothing to resume, and nothing at the service but a session that expires.
	Unsaved bool

	// Confirm, if not nil, is called once for each upload, when the source has ended and was
	// not changed, before the request that publishes the object. If it returns an error, no object is
	// published, and the error of the upload wraps it. Use it to wait for the end of a
	// program whose output is uploaded, see [os/exec.Cmd.Wait].
	Confirm func(ctx context.Context) error
}

// With returns an Uploader that makes its calls with other options. It shares
// the connections, the store, the circuit breaker and the limits of u:
//
//	patient, err := up.With(upload.CallOptions{RetryFor: time.Hour})
//	...
//	result, err := patient.File(ctx, path, spec)
//
// The error wraps [session.ErrInvalid] if the options are not valid, or exclude each other.
func (u *Uploader) With(o CallOptions) (*Uploader, error) {
	own := *u
	if err := own.apply(&o); err != nil {
		return nil, fmt.Errorf("call options: %w: %w", session.ErrInvalid, err)
	}
	return &own, nil
}

// apply changes the options of u, which no call uses yet.
func (u *Uploader) apply(o *CallOptions) (err error) {
	switch {
	case o.Skip < 0 || int(o.Skip) >= len(skipNames):
		return fmt.Errorf("%v: no such rule", o.Skip)
	case !utf8.ValidString(o.SourceVersion):
		return fmt.Errorf("source version %q: want UTF-8", o.SourceVersion)
	case o.RetryFor != 0 && o.Retries != 0:
		return errors.New("RetryFor and Retries: want one of them")
	case o.Size != nil && *o.Size < 0:
		return errors.New("size: want a number that is not negative")
	}
	if o.Header != nil {
		if u.client, err = u.client.WithHeader(o.Header); err != nil {
			return err
		}
	}
	if o.Observer != nil {
		u.opts.Observer = o.Observer
	}
	if o.RetryFor != 0 {
		u.opts.RetryFor = o.RetryFor
		u.retry.Time, u.retry.Retries = o.RetryFor, 0
	}
	if o.Retries != 0 {
		u.retry.Time, u.retry.Retries = 0, o.Retries
	}
	if o.Permanent != nil {
		u.retry.Permanent = o.Permanent
	}
	u.opts.Window = cmp.Or(o.Window, u.opts.Window)
	u.opts.Spool = cmp.Or(o.Spool, u.opts.Spool)
	if o.DetectContentType != nil {
		u.opts.DetectContentType = o.DetectContentType
	}
	if o.Size != nil {
		u.expect.Size = new(*o.Size)
	}
	u.version = cmp.Or(o.SourceVersion, u.version)
	u.source = cmp.Or(o.SourceName, u.source)
	if o.Accept != nil {
		u.accept = o.Accept
	}
	if o.RemoveSource || o.Dispose != nil {
		u.removal = removal{wanted: true, dispose: o.Dispose}
	}
	u.below = cmp.Or(o.Below, u.below)
	if o.Unsaved {
		u.opts.Store, u.opts.Parallel = nil, nil
	}
	if o.Confirm != nil {
		u.expect.Confirm = o.Confirm
	}
	u.rule = cmp.Or(o.Skip, u.rule)
	u.opts, err = u.opts.withDefaults()
	return err
}
