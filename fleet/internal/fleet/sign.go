package fleet

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ErrSignature means that a task or a setting is not signed with a key that the reader accepts.
var ErrSignature = errors.New("not signed with a key that is accepted")

// kindSignature is the class of ErrSignature of a file. Its reason may be the worker, which has other keys than the rest.
const kindSignature = "signature"

// ErrNoSignKey means that the queue needs signed messages, and this process has no key.
var ErrNoSignKey = errors.New("this fleet needs signed messages: give the key of the submitter with --sign-key")

// The first lines of what is signed, so that a signature of one kind is none of another.
const (
	signedTask     = "gcsup-fleet task 3\n"
	signedSettings = "gcsup-fleet settings 1\n"
)

// hash is the hash of a node of the tree of files. A task is signed by the root of that tree, so that a task with one
// of its files has the signature of the whole.
type hash = [sha256.Size]byte

// leafOf returns the leaf of a file. The first byte distinguishes leaves from inner nodes.
func leafOf(f File) hash {
	data, _ := json.Marshal(f) // a File has only strings and numbers
	return sha256.Sum256(append([]byte{0}, data...))
}

func nodeOf(left, right hash) hash { return sha256.Sum256(slices.Concat([]byte{1}, left[:], right[:])) }

// rootOf returns the root of the tree with these leaves, and the siblings on the way from the leaf with an index to the
// root. The last node of a level with an odd number of nodes is its own sibling.
func rootOf(level []hash, index int) (root hash, siblings [][]byte) {
	for len(level) > 1 {
		if len(level)%2 == 1 {
			level = append(level, level[len(level)-1])
		}
		siblings = append(siblings, bytes.Clone(level[index^1][:]))
		var next []hash
		for i := 0; i < len(level); i += 2 {
			next = append(next, nodeOf(level[i], level[i+1]))
		}
		level, index = next, index/2
	}
	return level[0], siblings
}

// Part is the place of the only file of a task in the task that was signed.
type Part struct {
	Index    int      `json:"index"`
	Siblings [][]byte `json:"siblings"`
}

// root returns the root of the tree with a leaf at this place.
func (p *Part) root(leaf hash) hash {
	index := p.Index
	for _, s := range p.Siblings {
		if len(s) != len(leaf) {
			return hash{}
		}
		if sibling := hash(s); index%2 == 0 {
			leaf = nodeOf(leaf, sibling)
		} else {
			leaf = nodeOf(sibling, leaf)
		}
		index /= 2
	}
	return leaf
}

// leaves returns the leaves of the files of a task.
func (t *Task) leaves() []hash {
	leaves := make([]hash, len(t.Files))
	for i, f := range t.Files {
		leaves[i] = leafOf(f)
	}
	return leaves
}

// signed returns what the signature of t covers: all except the signature, with the root of the files in place of the
// files.
func (t *Task) signed() []byte {
	head := *t
	head.Files, head.Signature, head.Part = nil, nil, nil
	data, _ := json.Marshal(head) // valid settings can be encoded
	var root hash
	if t.Part != nil {
		root = t.Part.root(leafOf(t.Files[0]))
	} else {
		root, _ = rootOf(t.leaves(), 0)
	}
	return slices.Concat([]byte(signedTask), root[:], data)
}

// sign signs t, which has not been divided, for the fleet of q.
func (q *Queue) sign(t *Task) {
	t.Fleet = q.opts.Fleet
	if q.opts.SignKey != nil {
		t.Signature = ed25519.Sign(q.opts.SignKey, t.signed())
	}
}

// verify returns an error that wraps ErrSignature unless t was signed for the fleet of q. Without keys, each task is
// accepted.
func (q *Queue) verify(t *Task) error {
	switch {
	case len(q.opts.VerifyKeys) == 0:
		return nil
	case t.Fleet != q.opts.Fleet:
		return fmt.Errorf("task: %w: it is for the fleet %q", ErrSignature, t.Fleet)
	case !q.accepts(t.signed(), t.Signature):
		return fmt.Errorf("task: %w", ErrSignature)
	}
	return nil
}

// accepts reports whether data was signed with one of the keys.
func (q *Queue) accepts(data, signature []byte) bool {
	return slices.ContainsFunc(q.opts.VerifyKeys, func(key ed25519.PublicKey) bool { return ed25519.Verify(key, data, signature) })
}
