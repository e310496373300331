package pidregistry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each program asks for small actor systems before its first node starts.
func TestProgramsAskForSmallActorSystems(t *testing.T) {
	mains, err := filepath.Glob("../../cmd/*/main.go")
	if err != nil || len(mains) < 4 {
		t.Fatal(mains, err)
	}
	for _, path := range mains {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), "func main() {\n\tpidregistry.ShareOneLockPerMap()\n") {
			t.Errorf("%s does not begin with pidregistry.ShareOneLockPerMap()", path)
		}
	}
}
