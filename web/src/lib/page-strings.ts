/** The words of what is loaded on demand: pages beside the herd, the wall, paper, the list of keys. */
import type { Role } from "./people";

const plural = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

export const pageStrings = {
  keys: {
    heading: "Keyboard shortcuts",
    groups: { go: "Go", nodes: "Nodes", charts: "Charts, on one that has the focus", page: "Page" },
    search: "Search",
    herd: "Go to the herd",
    users: "Go to the users",
    timeline: "Go to the bookings",
    usage: "Go to the usage",
    next: "Next node",
    previous: "Previous node",
    open: "Open or close the node",
    earlier: "Earlier, later",
    minute: "A minute later, earlier",
    ends: "The first moment, now",
    pause: "Pause or resume",
    refresh: "Refresh now",
    theme: "Next theme",
    help: "Show these keys",
    then: "then",
    or: "or",
  },

  wall: {
    free: "Free GPUs",
    byModel: "Free by model",
    away: "away",
    nodesInFault: (nodes: number): string => plural(nodes, "whole node", "whole nodes"),
    page: (page: number, pages: number): string => `${page} / ${pages}`,
    lost: "NOT LIVE",
    lostSince: (age: string): string => `This is how things were ${age} ago.`,
  },

  paper: {
    countsOnly: (nodes: number, most: number): string =>
      `${plural(nodes, "node", "nodes")}: their GPUs are counted, not drawn. Search for ${most} nodes or fewer before printing to have each GPU.`,
    leftOut: (nodes: number): string =>
      `${plural(nodes, "node is", "nodes are")} not on paper. Search for fewer nodes before printing.`,
  },

  users: {
    heading: "Users",
    table: "Who holds what",
    user: "User",
    gpus: "GPUs",
    memory: "GPU memory",
    processes: "Processes",
    fraction: "Of the herd",
    use: "In use",
    idleSince: "Held idle",
    free: "free",
    processesUnit: (count: number): string => (count === 1 ? " process" : " processes"),
    count: (users: number): string => plural(users, "user", "users"),
    summary: (users: number, devices: number): string =>
      `${plural(users, "user", "users")} on ${plural(devices, "GPU", "GPUs")}`,
    page: (user: string): string => `${user} over time`,
    thisIsMe: "This is me",
    me: "you",
    markMe: (user: string): string => `This is me: mark the row of ${user}`,
    unmarkMe: "Do not mark a row as mine",
    busy: (count: number): string => `${count} busy`,
    idle: (count: number): string => `${count} idle`,
    other: (count: number): string => `${count} unknown`,
    useOf: (parts: string): string => `Devices: ${parts}`,
    noneHint: "Whoever starts one appears here within a few seconds.",
    none: "Nobody has a process on a GPU right now.",
    moreNodes: (count: number): string => plural(count, "more node", "more nodes"),
    fewer: "show fewer",
    exact: (held: string): string => `${held} GPUs, shared ones divided by memory`,
  },

  charts: {
    heading: "Last 15 minutes",
    zone: (zone: string): string => `Times in ${zone}`,
    noPast: "The minutes before you opened this page could not be loaded.",
    utilization: "Utilisation",
    memory: "Memory",
    temperature: "Temperature",
    power: "Power",
    clock: "SM clock",
    host: "Host",
    cpu: "CPU",
    ram: "RAM",
    since: (when: string): string => `Since ${when}`,
    filling: "Filling up to the last 15 minutes",
    cursor: (title: string): string => `${title} over time`,
    cursorAt: (time: string, values: string): string => `${time}: ${values}`,
    cursorHint: "Arrow keys move the cursor",
    waiting: "No values yet",
    notReported: "Not reported",
    only: (label: string): string => `Show ${label} only`,
    all: (label: string): string => `Show all again, not only ${label}`,
    lineSummary: (label: string, last: string, low: string, high: string): string =>
      `${label}: now ${last}, between ${low} and ${high}.`,
    lineUnknown: (label: string): string => `${label}: unknown.`,
  },

  gpu: {
    uuid: "UUID",
    model: "Model",
    vendor: "Vendor",
    pci: "PCI address",
    compute: "Compute capability",
    profile: "MIG profile",
    parent: "Cut from",
    memoryBasis: "Memory counts",
    basis: {
      framebuffer: "the GPU's own memory",
      framebuffer_with_reserved: "the GPU's own memory, with what the driver reserves",
      host: "the host's memory, which it shares",
    },
    fan: "Fan",
    performance: "Performance state",
    clock: "SM clock",
    clockOf: (hertz: number, most: number | null): string =>
      most === null
        ? `${Math.round(hertz / 1e6)} MHz`
        : `${Math.round(hertz / 1e6)} of ${Math.round(most / 1e6)} MHz`,
    memoryController: "Memory controller",
    throttle: "Clocks limited by",
    notThrottled: "nothing",
    ecc: "Uncorrected ECC errors",
    eccNone: "none",
    copy: "Copy",
    copied: "Copied",
    calendar: "Bookings in my calendar",
    copyUuid: "Copy the UUID",
    throttleReasons: {
      1: "being idle",
      2: "chosen application clocks",
      4: "the power limit",
      8: "hardware slowdown",
      16: "sync boost",
      32: "heat",
      64: "heat (hardware)",
      128: "power brake (hardware)",
      256: "display clocks",
    } as Record<number, string>,
  },

  pages: {
    back: "Back to the herd",
    wayBack: "Where you are",
    herd: "Herd",
    loading: "Loading …",
    noNode: "This node is not here",
    noNodeHint: (id: string): string =>
      `The herd has no node ${id}. It may have been removed or renamed, or the address was mistyped.`,
    noGpu: "This GPU is not here",
    noGpuHint: (id: string): string =>
      `No node reports a GPU ${id}. It may have been moved, replaced or split, or the address was mistyped.`,
    similar: "Did you mean",
    ofNode: (name: string): string => `on ${name}`,
    gpu: (label: string): string => `GPU ${label}`,
    sliceOf: (label: string): string => `Slice ${label}`,
    gpus: "GPUs",
    processes: "Processes",
    noProcesses: "No processes on the GPUs of this node.",
    noProcessesHere: "No processes on this GPU.",
    machine: "Machine",
    disks: "Disks",
    about: "About this GPU",
    slices: "Slices",
    hidden: (rows: string): string => `${rows} not shown.`,
    showAll: (rows: string): string => `Show all ${rows}`,
    showFewer: (rows: number): string => `Show only the first ${rows}`,
    lastReport: (age: string): string => `reported ${age} ago`,
  },

  person: {
    account: "Account",
    admin: "Administration",
    logOut: "Log out",
    logOutFailed: "The hub did not answer: you are still logged in.",
    roles: { viewer: "viewer", member: "member", admin: "admin" } satisfies Record<Role, string>,
  },

  firstSteps: {
    noNodes: "No nodes yet",
    noNodesHint:
      "The hub is running. Tell it of your GPU machines in one of these ways; they appear here by themselves.",
    ways: {
      agent: {
        heading: "Run the agent on each GPU machine",
        hint: "Sees most and costs least. Make a join token on the hub, put it into a file on the machine, and start the agent there.",
      },
      ssh: {
        heading: "Let the hub log in by SSH",
        hint: "Nothing to install on the machines. Name them in gpuherd.toml and start the hub again.",
      },
      imported: {
        heading: "Take over another monitor",
        hint: "Reads host lists, inventories and settings of older tools and says what it understood.",
      },
      demo: {
        heading: "Look around first",
        hint: "A simulated herd that needs no GPU.",
      },
    },
    commands: {
      token: "gpuherd hub token create",
      agent: (hub: string): string => `gpuherd agent --hub ${hub} --join-token-file token.txt`,
      ssh: '[[nodes]]\nhosts = ["gpu01", "gpu02"]\nreach = { by = "ssh", user = "monitor" }',
      import: "gpuherd import hosts.txt",
    },
  },
} as const;
