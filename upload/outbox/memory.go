package outbox

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"gcsup/upload"
	"gcsup/upload/manifest"
)

// uploadedFile has the records of the files that were uploaded, with [Keep].
const uploadedFile = stateDir + "/uploaded.jsonl"

// memory records the files that were uploaded and are kept. Its file is a manifest.
type memory struct{ manifest *manifest.Manifest }

func openMemory(dir, endpoint string) (*memory, error) {
	m, err := manifest.Open(filepath.Join(dir, uploadedFile), endpoint)
	if err != nil {
		return nil, err
	}
	return &memory{m}, nil
}

// record records a file that was uploaded.
func (m *memory) record(res *upload.Result) error {
	r, ok := manifest.NewRecord(res, nil)
	if !ok {
		return fmt.Errorf("record of %s: it is not uploaded", res.Path)
	}
	return m.manifest.Record(r)
}

// uploaded returns the names of those jobs that are recorded and have not changed since. It sorts jobs.
func (m *memory) uploaded(ctx context.Context, jobs []upload.Job) (map[string]bool, error) {
	slices.SortFunc(jobs, func(a, b upload.Job) int { return strings.Compare(a.Spec.Object, b.Spec.Object) })
	paths := make(map[string]bool, len(jobs))
	for _, job := range jobs {
		paths[job.Path] = true
	}
	for job, err := range m.manifest.Skip(ctx, slices.Values(jobs)) {
		if err != nil {
			return nil, err
		}
		delete(paths, job.Path)
	}
	return paths, nil
}

func (m *memory) close() error { return m.manifest.Close() }
