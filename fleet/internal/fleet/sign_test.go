package fleet

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gcsup/internal/require"
)

// keyPair returns a key by its number.
func keyPair(n byte) (ed25519.PrivateKey, []ed25519.PublicKey) {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = n
	key := ed25519.NewKeyFromSeed(seed)
	return key, []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
}

// sent returns a task as a worker gets it.
func sent(t *testing.T, task *Task) *Task {
	t.Helper()
	data, err := task.encode()
	require.NoError(t, err)
	got, err := decodeTask(data)
	require.NoError(t, err)
	return got
}

// TestSignature signs tasks of several sizes. They verify, and so do the tasks with one of their files. Any change makes
// the signature invalid.
func TestSignature(t *testing.T) {
	key, public := keyPair(1)
	_, strangers := keyPair(2)
	for _, files := range []int{1, 2, 3, 5, 8, 1000} {
		q := &Queue{opts: QueueOptions{Fleet: "default", SignKey: key, VerifyKeys: append(strangers, public...)}}
		whole := sampleTask()
		whole.Settings.CustomTime = time.Unix(1, 5).In(time.FixedZone("", 3600))
		whole.Files = nil
		for i := range files {
			whole.Files = append(whole.Files, File{Path: fmt.Sprint("/data/<", i), Object: fmt.Sprintf("%04d", i), Size: int64(i)})
		}
		q.sign(whole)
		tasks := []*Task{whole}
		for _, i := range []int{0, files / 2, files - 1} {
			tasks = append(tasks, sent(t, whole).one(whole.Files[i]))
		}
		for _, task := range tasks {
			if err := q.verify(sent(t, task)); err != nil {
				t.Errorf("%s of %d: %v", task.Name(), files, err)
			}
			if again := sent(t, task).one(task.Files[0]); q.verify(again) != nil {
				t.Errorf("%s of %d: a part of it is not signed", task.Name(), files)
			}
			for name, change := range map[string]func(*Task){
				"path":       func(t *Task) { t.Files[0].Path = "/etc/shadow" },
				"object":     func(t *Task) { t.Files[0].Object = "!" },
				"generation": func(t *Task) { t.Files[0].Generation++ },
				"bucket":     func(t *Task) { t.Settings.Bucket = "other-bucket" },
				"settings":   func(t *Task) { t.Settings.PredefinedACL = "publicRead" },
				"endpoint":   func(t *Task) { t.Endpoint = "https://other.test" },
				"submission": func(t *Task) { t.Submission = "4567" },
				"fleet":      func(t *Task) { t.Fleet = "other" },
				"replace":    func(t *Task) { t.Replace = true },
				"signature":  func(t *Task) { t.Signature[0]++ },
				"none":       func(t *Task) { t.Signature = nil },
			} {
				changed := sent(t, task)
				change(changed)
				if err := q.verify(changed); !errors.Is(err, ErrSignature) {
					t.Errorf("%s of %d with another %s: %v, want ErrSignature", task.Name(), files, name, err)
				}
			}
		}
		for name, opts := range map[string]QueueOptions{
			"another key":   {Fleet: "default", VerifyKeys: strangers},
			"another fleet": {Fleet: "other", VerifyKeys: public},
		} {
			if err := (&Queue{opts: opts}).verify(whole); !errors.Is(err, ErrSignature) {
				t.Errorf("%s: %v, want ErrSignature", name, err)
			}
		}
	}
}

// TestSettingsRefused checks that a worker refuses settings that are not signed, those of another fleet, and older ones
// than it has seen, and that each change has a higher number.
func TestSettingsRefused(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	key, public := keyPair(1)
	w := &Worker{q: q, log: slog.New(slog.DiscardHandler)}
	read := func() (settings, error) {
		s, _, err := q.settings(t.Context())
		return w.newest(s, err), err
	}
	put := func(text []byte) {
		t.Helper()
		_, err := q.open.Load().control.Put(t.Context(), settingsKey, text)
		require.NoError(t, err)
	}
	stored := func() []byte {
		t.Helper()
		e, err := q.open.Load().control.Get(t.Context(), settingsKey)
		require.NoError(t, err)
		return e.Value()
	}
	q.opts.SignKey, q.opts.VerifyKeys = key, public
	require.NoError(t, q.SetDrain(t.Context(), true))
	drain := stored()
	if s, err := read(); err != nil || !s.Drain {
		t.Fatalf("%+v, %v, want that the fleet drains", s, err)
	}
	require.NoError(t, q.SetDrain(t.Context(), false))
	if s, err := read(); err != nil || s.Drain {
		t.Fatalf("%+v, %v, want that the fleet does not drain", s, err)
	}
	put(drain)
	if s, err := read(); err != nil || s.Drain || !w.refused {
		t.Errorf("older settings: %+v, %v, want those before", s, err)
	}
	for name, text := range map[string]string{
		"not signed":    `{"settings":{"fleet":"default","number":9223372036854775807,"drain":true}}`,
		"another value": strings.Replace(string(drain), `"rate":0`, `"rate":1`, 1),
		"no JSON":       `x`,
	} {
		put([]byte(text))
		if s, err := read(); !errors.Is(err, ErrSignature) || s.Drain {
			t.Errorf("%s: %+v, %v, want ErrSignature, and the settings before", name, s, err)
		}
	}
	q.opts.Fleet = "other"
	put(drain)
	if _, err := read(); !errors.Is(err, ErrSignature) {
		t.Errorf("settings of another fleet: %v, want ErrSignature", err)
	}
	q.opts.Fleet = "default"
	require.NoError(t, q.SetRate(t.Context(), 5)) // replaces what is not signed
	if s, err := read(); err != nil || s.Rate != 5 || w.refused {
		t.Errorf("the next change: %+v, %v", s, err)
	}
	q.opts.SignKey = nil
	if err := q.SetRate(t.Context(), 6); !errors.Is(err, ErrNoSignKey) {
		t.Errorf("without a key: %v, want ErrNoSignKey", err)
	}
}
