SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# CLUSTER=current takes the demo to the cluster of DBBENCH_KUBECONFIG, or else to that
# of kubectl's current context.
CLUSTER ?= sandbox
GO_BUILD := CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags '-s -w'
TOOL := go tool -modfile=hack/tools/go.mod
GOLANGCI_LINT := $(CURDIR)/bin/golangci-lint
SANDBOX := cd hack/sandbox && go run .
IMAGE ?= dbbench.dev/operator:dev
ARCHITECTURES ?= amd64,arm64
IMAGE_FILES := --entrypoint /manager --file $(CURDIR)/bin/linux-{arch}/manager=/manager --file $(CURDIR)/bin/linux-{arch}/runner=/runner
comma := ,
# Packages whose tests need a kube-apiserver and etcd.
ENVTEST := ./controllers ./config/crd ./cmd/kubectl-dbbench

##@ Start here

.PHONY: help
help: ## Show the targets.
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## From nothing to a benchmark's table: cluster, MariaDB, operator, DBBenchmark.
	go run ./hack/demo --cluster=$(CLUSTER)

.PHONY: test
test: deps test-go test-modules test-dialects test-e2e check ## Set up and run all tests and checks; on a fresh machine about 40 minutes.

.PHONY: check
check: verify lint ## See that generated files, layout and style hold.

##@ Build

.PHONY: build
build: ## Build bin/manager, bin/runner and bin/kubectl-dbbench, static.
	$(GO_BUILD) -o bin/ ./cmd/manager ./cmd/runner ./cmd/kubectl-dbbench
	ln -sf kubectl-dbbench bin/kubectl_complete-dbbench

.PHONY: image
image: ## Build the image of both programs as bin/operator.tar, without a container engine.
	$(MAKE) build-all ARCHITECTURES=$$(go env GOARCH)
	cd hack/image && go run . --tag $(IMAGE) $(IMAGE_FILES) --output $(CURDIR)/bin/operator.tar --arch $$(go env GOARCH)

.PHONY: image-layout
image-layout: build-all ## Build the image for ARCHITECTURES as the OCI layout bin/image, with SBOMs.
	cd hack/image && go run . --tag $(IMAGE) $(IMAGE_FILES) --layout $(CURDIR)/bin/image --arch $(ARCHITECTURES)

.PHONY: image-push
image-push: build-all ## Build it, and upload it to the registry that IMAGE names.
	cd hack/image && go run . --tag $(IMAGE) $(IMAGE_FILES) --push --arch $(ARCHITECTURES)

.PHONY: build-all
build-all: ## Build bin/linux-ARCHITECTURE/manager and runner for ARCHITECTURES.
	for arch in $(subst $(comma), ,$(ARCHITECTURES)); do \
		GOOS=linux GOARCH=$$arch $(GO_BUILD) -o bin/linux-$$arch/ ./cmd/manager ./cmd/runner; \
	done

.PHONY: dist
dist: ## Write dist/install.yaml and the Helm chart's archive for IMAGE.
	cd hack/install && go run . --image $(IMAGE) --output $(CURDIR)/dist

.PHONY: generate
generate: ## Generate deep copies and docs/api.md from api/.
	$(TOOL) controller-gen object paths=./api/...
	$(TOOL) crd-ref-docs --log-level=ERROR --max-depth=12 --renderer=markdown --source-path=./api/v1alpha1 \
		--config=hack/docs/config.yaml --templates-dir=hack/docs/templates --output-path=docs/api.md

.PHONY: manifests
manifests: ## Generate the CRD from api/ and the manager's role from controllers/, for the chart too.
	$(TOOL) controller-gen crd paths=./api/... output:crd:artifacts:config=config/crd/bases
	$(TOOL) controller-gen rbac:roleName=dbbench-manager paths=./controllers/... output:rbac:artifacts:config=config/rbac
	cp config/crd/bases/dbbench.dev_dbbenchmarks.yaml charts/dbbench/files/crd.yaml
	cp config/rbac/role.yaml charts/dbbench/files/role.yaml

##@ Check

.PHONY: fmt
fmt: ## Format the code.
	gofmt -w $$(git ls-files --cached --others --exclude-standard '*.go')

.PHONY: vet
vet: ## Run go vet, on the code behind build tags too.
	go vet ./...
	go vet -tags e2e,browser ./test/e2e/... ./results/report
	cd hack/image && go vet ./...
	cd hack/install && go vet ./...

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint; it holds the imports to the layout too.
	$(GOLANGCI_LINT) run --build-tags e2e,browser ./...
	cd hack/image && $(GOLANGCI_LINT) run ./...
	cd hack/install && $(GOLANGCI_LINT) run ./...
	cd hack/sandbox && $(GOLANGCI_LINT) run .

.PHONY: verify
verify: vet $(GOLANGCI_LINT) ## See that what is generated is up to date, and that the linter guards the layout.
	go run ./hack/verify --golangci-lint=$(GOLANGCI_LINT)

.PHONY: deps
deps: ## Install the Debian packages that the tests need.
	hack/deps

# The assets are a kube-apiserver and etcd.
WITH_ASSETS = KUBEBUILDER_ASSETS=$$($(SANDBOX) env | sed -n 's/^KUBEBUILDER_ASSETS=//p')

# The slow packages wait more than they compute, so that they are run side by side.
.PHONY: test-go
test-go: ## Run the tests of test-unit and test-envtest in the operator's module, side by side.
	$(SANDBOX) build
	$(WITH_ASSETS) go test -timeout 30m ./...
	go test -tags browser -run Browser ./results/report

.PHONY: test-modules
test-modules: ## Run the tests of the tools that are modules of their own.
	cd hack/image && go test ./...
	cd hack/install && go test ./...
	cd hack/sandbox && go test .

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster: pure code, and the runner against a real MariaDB.
	go test -timeout 30m $$(go list ./... | grep -vxF "$$(go list $(ENVTEST))")
	go test -tags browser -run Browser ./results/report

.PHONY: test-dialects
test-dialects: ## Run the runner's tests against MySQL 9 and MariaDB 10.11 and 11.8, without a cluster. Needs root the first time.
	$(SANDBOX) server-root mysql mariadb-10.11 mariadb-11.8
	DBBENCH_ALL_SERVERS=1 go test -count=1 -timeout 20m -run 'Dialect|Unpacked' ./test/mariadb ./runner/mysql ./cmd/runner

.PHONY: test-envtest
test-envtest: ## Run the tests against a real kube-apiserver and etcd.
	$(SANDBOX) build
	$(WITH_ASSETS) go test -timeout 20m $(ENVTEST)

.PHONY: test-e2e
test-e2e: ## Run the end-to-end tests in the sandbox, which stays up.
	go test -tags e2e -count=1 -timeout 45m ./test/e2e/...

.PHONY: bench
bench: ## Compare the runner with sysbench and mariadb-slap; FLAGS=-help says how to do less.
	go run ./hack/bench $(FLAGS)

.PHONY: scale
scale: ## Simulate 100 and 1,000 benchmarks against a real API server; half an hour or more.
	$(SANDBOX) build
	KUBEBUILDER_ASSETS=$$($(SANDBOX) env | sed -n 's/^KUBEBUILDER_ASSETS=//p') go run ./test/scale

##@ Sandbox: a real Kubernetes on this machine (Linux, root)

.PHONY: sandbox-up
sandbox-up: ## Start it, or heal it. The first time builds Kubernetes.
	$(SANDBOX) up

.PHONY: sandbox-down
sandbox-down: ## Stop it and remove all but the cache.
	$(SANDBOX) down

.PHONY: sandbox-status
sandbox-status: ## Show its components, node and pods.
	$(SANDBOX) status

##@ Clean up

.PHONY: clean
clean: ## Remove what was built here.
	rm -rf bin

# The linter is built once for each version of its module file; some minutes.
$(GOLANGCI_LINT): hack/tools/lint/go.mod
	nice go build -modfile=hack/tools/lint/go.mod -o $@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	touch $@
