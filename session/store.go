package session

import (
	"context"
	"strings"
)

// Store keeps Tokens. Implementations must
//   - make Save atomic and durable: after a crash at any moment, Load gives
//     the old Token or the new one, never a third, and after Save has returned
//     the new one;
//   - keep what [Encode] gives secret;
//   - return errors that wrap [ErrNoToken], [ErrDamaged], [ErrTokenVersion] and
//     [ErrInUse] where these apply;
//   - change nothing in Load and List, which are called without the lock;
//   - release a lock when the process that holds it dies.
//
// A Store may also have the method of [Quarantine].
//
// IDs are those of Tokens: letters, digits, '-' and '_'.
type Store interface {
	Load(ctx context.Context, id string) (*Token, error)
	Save(ctx context.Context, t *Token) error
	List(ctx context.Context) ([]string, error) // IDs, sorted
	Delete(ctx context.Context, id string) error
	// Lock holds the upload for this process until unlock is called. It does
	// not wait: an upload that another holds is ErrInUse.
	Lock(ctx context.Context, id string) (unlock func(), err error)
}

// Quarantine is a [Store] that keeps damaged Tokens for a while, for a person to
// look at. They hold a secret.
type Quarantine interface {
	// SetAside keeps a damaged Token under another name, so that the next Load
	// returns ErrNoToken. It is for the holder of the lock.
	SetAside(ctx context.Context, id string) error
}

// SetAside gets a Token that Load calls damaged out of the way, so that the upload
// can start over. It is for the holder of the lock: for any other caller the file
// may be another by now. A Store that is no [Quarantine] deletes it.
func SetAside(ctx context.Context, s Store, id string) error {
	if q, ok := s.(Quarantine); ok {
		return q.SetAside(ctx, id)
	}
	return s.Delete(ctx, id)
}

func validID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return id != "" && len(id) <= 64 && strings.Trim(id, letters) == ""
}
