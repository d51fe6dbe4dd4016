package upload_test

import (
	"context"
	"net"
	"sync"
	"syscall"

	"gcsup/session/state"
)

var errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// memoryStore keeps the saved form of Tokens.
type memoryStore struct {
	mu     sync.Mutex
	tokens map[string][]byte
}

func newMemoryStore() *memoryStore { return &memoryStore{tokens: map[string][]byte{}} }

func (s *memoryStore) Load(_ context.Context, id string) (*state.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.tokens[id]
	if !ok {
		return nil, state.ErrNoToken
	}
	return state.Decode(b)
}

func (s *memoryStore) Save(_ context.Context, t *state.Token) error {
	b, err := state.Encode(t)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[t.ID] = b
	return nil
}

func (s *memoryStore) List(context.Context) (ids []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.tokens {
		ids = append(ids, id)
	}
	return ids, nil
}

func (s *memoryStore) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tokens, id)
	return nil
}

func (s *memoryStore) Lock(context.Context, string) (func(), error) { return func() {}, nil }
