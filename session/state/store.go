package state

import (
	"context"
	"strings"
)

// Store saves saved uploads, one for each upload. [ValidID] reports which IDs are valid.
//
// The contract of a Store follows. Package storetest checks an implementation. A Store
// that machines share must also implement [Leaser], whose contract is stricter.
//
// # Callers
//
// Any goroutine may call any method at any time. Several processes may open the same
// storage, each with its own Store.
//
// Load and List need no lock and change nothing. They may be called while another
// goroutine or process saves the upload: Load then returns the old saved upload or the new one.
//
// The caller of Save, Delete and [SetAside] must hold the lock of the upload. A Store that
// is not a Leaser need not check it. The goroutines of the process that holds the lock may
// call them concurrently. The calls then have an effect as if they were made one after
// the other, in any order. A caller that needs an order must not call them concurrently.
//
// # Locks
//
// A lock excludes every other call of Lock for that ID, in this process and in any
// other. Lock does not wait. The upload need not be saved, and a lock does not save it.
// Save and Delete keep the lock.
//
// The lock is held until unlock is called, or the process dies for any reason. Any
// goroutine may call unlock. Further calls of unlock do nothing, even if the upload is
// locked again.
//
// # Saved uploads
//
// Save neither changes the saved upload nor keeps a pointer into it after it returned. Each Load
// returns a saved upload of its own, which the caller may change.
//
// The Store stores the result of [Encode], which has the secret of the session. Only
// the user, or the program, may be able to read it, and errors must not contain it.
// Load returns the result of [Decode], and compares the ID: a saved upload with the ID of
// another upload is damaged. A damaged saved upload stays until the holder of the lock calls
// SetAside, Save or Delete.
//
// # Crashes
//
// Save is atomic and durable. If the process or the machine dies during Save, or Save
// returns an error, Load returns the old saved upload or the new one. After Save has
// returned nil, Load returns the new one. Delete is atomic and durable too. The
// remains of a crash do not prevent the next process from locking, saving or deleting
// the upload.
//
// If its context ends, a call may fail. This error must not wrap the errors below, even
// if the cause of the context does: with errgroup, the cause can be the error of
// another upload. A failed Lock holds nothing.
//
// A Store that sends requests over a network retries them itself.
//
// A Store may have a method Close. Close does not release locks. After Close, the
// caller must not call other methods, except unlock.
//
// # Errors
//
// The errors wrap
//   - [ErrNotFound] if Load finds no upload, or the ID is not valid;
//   - [ErrCorrupt] or [ErrVersion] if Decode returned it;
//   - [ErrInUse] if another caller holds the lock. The error of Lock is then a
//     *[HeldError], which [errors.As] finds.
//
// Other errors, such as those of a network, mean that the outcome is not known. If a
// later save of an upload fails in this way, package upload continues the upload.
type Store interface {
	// Load returns the saved upload with that ID.
	Load(ctx context.Context, id string) (*Upload, error)

	// Save saves a saved upload under its ID and replaces an earlier one.
	Save(ctx context.Context, t *Upload) error

	// List returns the IDs of all saved uploads, sorted by their bytes. They include
	// damaged uploads and those of a newer program, but no other entries of the storage,
	// such as locks.
	List(ctx context.Context) ([]string, error)

	// Delete deletes a saved upload. If there is none, it returns nil.
	Delete(ctx context.Context, id string) error

	// Lock locks an upload until unlock is called. It returns an error for an ID that is
	// not valid.
	Lock(ctx context.Context, id string) (unlock func(), err error)
}

// Quarantine is implemented by a [Store] that keeps damaged saved uploads for a while,
// so that a user can inspect them. A damaged saved upload has a secret.
type Quarantine interface {
	// SetAside renames a damaged saved upload, so that the next Load returns
	// ErrNotFound, and List does not return its ID. If there is no saved upload,
	// it returns nil. The caller must hold the lock.
	SetAside(ctx context.Context, id string) error
}

// SetAside removes a damaged saved upload from the Store, so that the upload can start
// over. If s implements [Quarantine], the saved upload is kept under another name;
// otherwise it is deleted. The caller must hold the lock. Without the lock, the
// saved upload may have been replaced by a valid one.
func SetAside(ctx context.Context, s Store, id string) error {
	if q, ok := s.(Quarantine); ok {
		return q.SetAside(ctx, id)
	}
	return s.Delete(ctx, id)
}

// LockChecker is implemented by a [Store] that can report whether an upload is
// locked without a call of Lock.
type LockChecker interface {
	// Locked reports whether any process, including this one, holds the lock of an
	// upload. It changes no upload, and makes no call of Lock fail.
	Locked(ctx context.Context, id string) (bool, error)
}

// ValidID reports whether id can be the ID of an upload: at most 64 letters, digits, '-' and '_'.
func ValidID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return id != "" && len(id) <= 64 && strings.Trim(id, letters) == ""
}
