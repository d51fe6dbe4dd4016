package session

import (
	"context"
	"strings"
)

// Store saves Tokens. Implementations must
//   - make Save atomic and durable: after a crash at any moment, Load returns
//     the old Token or the new one; after Save has returned, it returns the
//     new one;
//   - keep the result of [Encode] secret;
//   - return errors that wrap [ErrNoToken], [ErrCorruptToken], [ErrTokenVersion] and
//     [ErrInUse] if they apply;
//   - change nothing in Load and List, which callers use without the lock;
//   - release a lock when the process that holds it dies.
//
// A Store may also implement [Quarantine] and [LockChecker]. A Store that machines share
// must implement [Leaser].
//
// [ValidID] reports which IDs are valid.
type Store interface {
	Load(ctx context.Context, id string) (*Token, error)
	Save(ctx context.Context, t *Token) error
	List(ctx context.Context) ([]string, error) // IDs, sorted
	Delete(ctx context.Context, id string) error
	// Lock locks the upload for this process until unlock is called. It does
	// not wait: if another process holds the lock, the error wraps ErrInUse.
	Lock(ctx context.Context, id string) (unlock func(), err error)
}

// Quarantine is implemented by a [Store] that keeps damaged Tokens for a while,
// so that a user can inspect them. A damaged Token has a secret.
type Quarantine interface {
	// SetAside renames a damaged Token, so that the next Load returns
	// ErrNoToken. The caller must hold the lock.
	SetAside(ctx context.Context, id string) error
}

// SetAside removes a damaged Token from the Store, so that the upload can start
// over. If s implements [Quarantine], the Token is kept under another name;
// otherwise it is deleted. The caller must hold the lock. Without the lock, the
// Token may have been replaced by a valid one.
func SetAside(ctx context.Context, s Store, id string) error {
	if q, ok := s.(Quarantine); ok {
		return q.SetAside(ctx, id)
	}
	return s.Delete(ctx, id)
}

// LockChecker is implemented by a [Store] that can report whether an upload is
// locked without a lock of its own.
type LockChecker interface {
	// Locked reports whether a process, which may be this one, holds the lock of
	// an upload. It changes nothing.
	Locked(ctx context.Context, id string) (bool, error)
}

// ValidID reports whether id can be the ID of an upload: at most 64 letters, digits, '-' and '_'.
func ValidID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return id != "" && len(id) <= 64 && strings.Trim(id, letters) == ""
}
