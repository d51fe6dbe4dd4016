package examples

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	"modernc.org/sqlite"

	"gcsup/session/state"
)

// SQLiteStore is a state.Store in a table of a SQLite database.
type SQLiteStore struct {
	db  *sql.DB
	dir string
}

var _ state.Store = (*SQLiteStore)(nil)

// OpenSQLite opens the store in a directory. Only this user can read its files,
// because any reader of a saved upload can write to the upload.
func OpenSQLite(ctx context.Context, dir string) (*SQLiteStore, error) {
	if err := os.MkdirAll(filepath.Join(dir, "locks"), 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "uploads.db")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite gives its other files the same mode
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	// FULL syncs each commit, so that a saved upload survives a power loss.
	db, err := sql.Open("sqlite", dsn(path, "busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"))
	if err != nil {
		return nil, err
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS uploads (id TEXT PRIMARY KEY, doc BLOB NOT NULL)`)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &SQLiteStore{db: db, dir: dir}, nil
}

func dsn(path string, pragmas ...string) string {
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: url.Values{"_pragma": pragmas}.Encode()}).String()
}

// Close closes the database. No upload may be under way.
func (s *SQLiteStore) Close() error { return s.db.Close() }

// Load implements state.Store.
func (s *SQLiteStore) Load(ctx context.Context, id string) (*state.Upload, error) {
	var data []byte
	err := s.db.QueryRowContext(ctx, `SELECT doc FROM uploads WHERE id = ?`, id).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fmt.Errorf("%w: %s", state.ErrNotFound, id)
	}
	if err != nil {
		return nil, err
	}
	t, err := state.Decode(data)
	if err == nil && t.ID != id {
		err = fmt.Errorf("%w: the saved upload %s has the ID %s", state.ErrCorrupt, id, t.ID)
	}
	return t, err
}

// Save implements state.Store.
func (s *SQLiteStore) Save(ctx context.Context, t *state.Upload) error {
	data, err := state.Encode(t)
	if err != nil {
		return err
	}
	_, err = s.db.ExecContext(ctx, `INSERT INTO uploads VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc`, t.ID, data)
	return err
}

// List implements state.Store.
func (s *SQLiteStore) List(ctx context.Context) (ids []string, err error) {
	rows, err := s.db.QueryContext(ctx, `SELECT id FROM uploads ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Delete implements state.Store.
func (s *SQLiteStore) Delete(ctx context.Context, id string) error {
	_, err := s.db.ExecContext(ctx, `DELETE FROM uploads WHERE id = ?`, id)
	return err
}

// Lock holds an exclusive transaction of a separate database for each upload. SQLite
// locks the file of that database, and the system releases the lock when the process
// dies. A row with the name of the holder would stay. Lock leaves the empty file,
// because removing it could remove the lock of the next process.
func (s *SQLiteStore) Lock(ctx context.Context, id string) (unlock func(), err error) {
	if !state.ValidID(id) { // the ID is a part of a file name
		return nil, fmt.Errorf("%w: %q", state.ErrNotFound, id)
	}
	db, err := sql.Open("sqlite", dsn(filepath.Join(s.dir, "locks", id), "busy_timeout(0)"))
	if err != nil {
		return nil, err
	}
	// The transaction is that of one connection, which closes with db.
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, `BEGIN EXCLUSIVE`); err != nil {
		var busy *sqlite.Error
		if errors.As(err, &busy) && busy.Code() == sqliteBusy {
			err = &state.HeldError{} // SQLite does not show which process holds the lock
		}
		return nil, errors.Join(err, db.Close())
	}
	return sync.OnceFunc(func() { _ = db.Close() }), nil
}

const sqliteBusy = 5 // https://sqlite.org/rescode.html#busy
