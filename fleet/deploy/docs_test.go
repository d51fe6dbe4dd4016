package deploy_test

import (
	"os"
	"regexp"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"
)

// TestJobsOfDocs checks that the manifests of Kubernetes in the documents of gcsup have only fields that exist.
func TestJobsOfDocs(t *testing.T) {
	for _, page := range []string{"many-machines.md", "service.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, m := range regexp.MustCompile("(?ms)^```yaml\n(apiVersion: batch/v1\n.*?)^```").FindAllStringSubmatch(string(text), -1) {
			found = true
			var job batchv1.Job
			if err := yaml.UnmarshalStrict([]byte(m[1]), &job); err != nil || job.Kind != "Job" || job.Name == "" {
				t.Errorf("docs/%s: %v, %s %q", page, err, job.Kind, job.Name)
			}
		}
		if !found {
			t.Errorf("docs/%s has no Job", page)
		}
	}
}
